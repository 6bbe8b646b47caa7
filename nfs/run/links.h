/*
 * Link types of captures: frames of others than Ethernet become Ethernet for functions, and what
 * leaves becomes theirs again.
 *
 * What a cooked header has besides the protocol and the sender's address goes into the destination
 * address, of a prefix that is marked as local (06); a function that writes another address there
 * makes an outgoing packet of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LINK_MOST 20 /* bytes of a header */
#define LINK_ETHERNET 14

/* Whether frames of a link type (DLT_*) are understood; `names` lists those that are. */
bool link_is_known(int link, const char **names);

/*
 * The Ethernet header of a frame; returns the bytes of its own header, or -1 if it is shorter than
 * that, or its fields do not fit.
 */
int link_to_ethernet(int link, const uint8_t *bytes, uint32_t length,
		     uint8_t ethernet[LINK_ETHERNET]);

/* The header of a frame by its Ethernet header; returns its bytes, or -1 if the type has none. */
int link_from_ethernet(int link, const uint8_t ethernet[LINK_ETHERNET], uint8_t header[LINK_MOST]);

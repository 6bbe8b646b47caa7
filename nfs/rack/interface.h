/* A network interface of the kernel, by AF_PACKET: whole Ethernet frames, with their VLAN tags. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How an interface is named in place of a capture. */
#define INTERFACE_PREFIX "af_packet:"

struct interface;

/* Open an interface to send, and to receive; NULL after printing why. */
struct interface *interface_open(const char *name, bool receives);
void interface_close(struct interface *interface);

/*
 * The next frame that came in, in memory that is valid until the next call; NULL without one. Those
 * that the interface itself sent are left out. A checksum that the kernel left to hardware is
 * written.
 */
const uint8_t *interface_receive(struct interface *interface, uint32_t *length);
/* False if the kernel does not take it: the interface is down, or the frame longer than its MTU. */
bool interface_send(struct interface *interface, const uint8_t *bytes, uint32_t length);

/* Whether receiving or sending has shown, after printing it, that the interface was removed. */
bool interface_is_gone(const struct interface *interface);

/* Let no more frames in than already wait to be received. */
void interface_shut(struct interface *interface);

/* Frames that came in and were lost: the queue was full, or they were longer than a link takes. */
uint64_t interface_missed(struct interface *interface);

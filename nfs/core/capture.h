/* Replays the packets of a capture file in a loop. */
#pragma once

#include <stdint.h>

#include <rte_mbuf.h>

#define CAPTURE_MOST 65535 /* packets that are read */

struct capture;

/* NULL after printing why: no such file, no Ethernet capture, no packet that fits a buffer. */
struct capture *capture_open(const char *path);
void capture_close(struct capture *capture);

/* Up to `n` next packets; fewer while their buffers are still in use. */
uint16_t capture_receive(struct capture *capture, struct rte_mbuf **packets, uint16_t n);

/* The packets of a capture file, round and round, as they were captured. */
#ifndef NFS_CORE_CAPTURE_H
#define NFS_CORE_CAPTURE_H

#include <stdint.h>

#include <rte_mbuf.h>

struct capture;

/* NULL after printing why: no such file, not a capture of Ethernet, no packet that fits a buffer.
 */
struct capture *capture_open(const char *path);
void capture_close(struct capture *capture);

/* The next packets, at most `n`; fewer while their buffers are still held by somebody. */
uint16_t capture_receive(struct capture *capture, struct rte_mbuf **packets, uint16_t n);

#endif

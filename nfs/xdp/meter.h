/*
 * Keeps the t_max of a chain: a packet passes if it is not further ahead of the rate than a burst
 * takes. A meter is the time at which all that has passed would have, at that rate; it needs no
 * multiplication by the time that went by, and nothing is left over.
 *
 * Packets that several processors run at once may pass both where there is room for one.
 */
#pragma once

#include "xdp/packet.h"

#define METER_SHIFT 4 /* times are in sixteenths of a ns, so that short packets cost what they must */
#define METER_LONGEST 65536ull /* bytes of a packet, which may be for minutes at a low rate */
#define METER_MOST_AHEAD (60000000000ull << METER_SHIFT)

/* The time, ns, which its host keeps: the card lacks the kernel's clock. */
__u64 clock_ns SEC(".data.clock");

/* `cost`: of a byte; `burst`: what may pass at once. */
static __always_inline bool meter_admits(struct xdp_md *ctx, __u64 *meter, __u64 cost, __u64 burst)
{
	const __u64 now = clock_ns << METER_SHIFT;
	const __u64 ahead = *meter - now; /* too far where time went back by far */
	const __u64 due = ahead <= METER_MOST_AHEAD + burst + METER_LONGEST * cost ? *meter : now;

	if (due - now > burst)
		return false;
	*meter = due + (__u64)(packet_end(ctx) - packet_begin(ctx)) * cost;
	return true;
}

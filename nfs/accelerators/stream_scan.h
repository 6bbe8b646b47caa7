/*
 * Scans segments of TCP together with the bytes of their stream that are around them, for functions
 * that scan payloads: a rule matches also where its bytes are in several segments, which come in any
 * order. Each segment is scanned when it comes, with those bytes before and behind it that came
 * earlier, as many as the widest rule needs; an accelerator may leave out most of those before it
 * where the last scan of the stream has settled that only a short match can have begun.
 *
 * A function that drops what matches frees segments, too, of which it cannot know what their
 * receiver makes of them. Others scan such a segment by itself, and leave its stream as it is.
 */
#pragma once

#include "accelerators/offload.h"
#include "core/stream.h"

#define STREAM_SCAN_MOST_AROUND 1024
#define STREAM_SCAN_SETTLED 1 /* in place of the number of a scan that settled; these are even */

#define STREAM_SCAN_STREAMS                                                                        \
	"streams", "TCP streams that are followed; 0: each segment is scanned by itself", 0,       \
		1 << 20, 4096

/* Counters, from `first` on. */
enum {
	STREAM_SCAN_DIFFERING,
	STREAM_SCAN_OUTSIDE,
	STREAM_SCAN_BEHIND,
	STREAM_SCAN_UNFOLLOWED,
	STREAM_SCAN_GIVEN_UP,
	STREAM_SCAN_COUNTERS
};
#define STREAM_SCAN_COUNTERS_FROM(first)                                                           \
	[(first) + STREAM_SCAN_DIFFERING] = {"differing", "segments that repeat bytes otherwise"}, \
	[(first) + STREAM_SCAN_OUTSIDE] = {"outside", "segments too far from the bytes that are "  \
						      "due, other SYNs, urgent ones, and what "    \
						      "has no ACK"},                               \
	[(first) + STREAM_SCAN_BEHIND] = {"behind", "segments of bytes that are forgotten, "       \
						    "scanned by themselves"},                      \
	[(first) + STREAM_SCAN_UNFOLLOWED] = {"unfollowed", "segments with no room for their "     \
							    "stream, or of one that was lost"},    \
	[(first) + STREAM_SCAN_GIVEN_UP] = {"given_up", "streams given up for others"}

struct stream_scan {
	struct streams streams;
	bool follows;
	bool drops;      /* segments of which it is not known what their receiver makes of them */
	uint16_t around; /* bytes before and behind a segment that are scanned with it */
	uint32_t last;   /* number of a scan */
	uint8_t *joined; /* of each held packet: its payload and these */
	uint64_t *counters;
};

/*
 * Follow `most` streams, or none, for a function that offloads scans; its counters are `counters`.
 * 0, or -ENOMEM after printing why.
 */
int stream_scan_create(struct stream_scan *scan, const struct offload *offload, uint32_t most,
		       bool drops, uint64_t *counters);
void stream_scan_destroy(struct stream_scan *scan);

/* Go on with the streams of another function, which may have other rules; no scan is under way. */
void stream_scan_take_over(struct stream_scan *scan, struct stream_scan *from);

/*
 * Take a held segment with its whole payload, which is the job's input, and put what is around it
 * into the job. False if the segment is to be freed.
 */
bool stream_scan_take(struct stream_scan *scan, const struct offload *offload,
		      struct offloaded *offloaded);

/* Note a completed scan: what comes next in its stream needs less around it if it settled. */
static inline void stream_scan_complete(const struct offloaded *offloaded)
{
	if (offloaded->stream && offloaded->stream->scan == offloaded->scan)
		offloaded->stream->scan = offloaded->job.settled ? STREAM_SCAN_SETTLED : 0;
}

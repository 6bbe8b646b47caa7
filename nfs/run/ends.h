/* The ends of a chain: where packets come from, and where they go. */
#pragma once

#include "core/chain.h"
#include "run/captures.h"

/* Where packets come from. */
struct source;

/*
 * "FILE", "-", "af_packet:INTERFACE" or "ring[:FLOWS,SIZE]"; NULL after printing why.
 * `reads` as for capture_reader_open().
 */
struct source *source_open(const char *text, enum nf_side side, const char *reads);
void source_close(struct source *source);
/* Buffers that are not back yet; 0 without a source. */
unsigned int source_in_use(const struct source *source);
/* Whether packets have times of their own. */
bool source_is_recorded(const struct source *source);
/* Of a recorded source. */
struct capture_format source_format(const struct source *source);

/*
 * Up to `n` packets, all from the source's side; of one time, which is put into `time_ns`, if they
 * are recorded. Returns how many; 0 with `*ended` if there will be no more, with `*failed` after
 * printing why.
 */
uint16_t source_receive(struct source *source, struct rte_mbuf **packets, uint16_t n,
			uint64_t *time_ns, bool *ended, bool *failed);
/* The time of the next recorded packet; UINT64_MAX at the end. */
uint64_t source_next_ns(struct source *source, bool *failed);

/* Where packets go. */
struct sink;

/*
 * The same, with a file to write, of a format or the usual one; NULL as text frees all packets. NULL
 * after printing why.
 */
struct sink *sink_open(const char *text, const struct capture_format *format);
/*
 * Takes over the packets; false after printing why. `recorded`: they come from captures, and may be
 * cut.
 */
bool sink_send(struct sink *sink, struct rte_mbuf **packets, uint16_t n, uint64_t time_ns,
	       bool recorded);
/* False after printing why. */
bool sink_close(struct sink *sink, bool keep);

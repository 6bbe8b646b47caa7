/*
 * Packets from and to capture files: pcap or pcapng in, also compressed by gzip; pcap out.
 *
 * Frames are those of Ethernet: others become so (run/links.h). Of a packet that was captured up to
 * a snap length, the bytes that are missing are zeros, if its headers are there and it is no
 * fragment; otherwise it ends early, and is malformed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct capture_reader;

struct capture_format {
	int link; /* DLT_* */
	bool nanoseconds;
	int snap_length;
};

/*
 * Open a capture; "-" is stdin. NULL after printing why: not a capture, of an unknown link, or, of
 * a file, packets that cannot be read, each with its number; if it must be `whole`, also packets
 * that are cut, because `reads` (a function) looks at payloads.
 */
struct capture_reader *capture_reader_open(const char *path, const char *reads);
void capture_reader_close(struct capture_reader *reader);
struct capture_format capture_reader_format(const struct capture_reader *reader);

enum capture_next { CAPTURE_PACKET, CAPTURE_END, CAPTURE_FAULT };

/* The time of the next packet, ns; CAPTURE_FAULT after printing what is wrong with the file. */
enum capture_next capture_reader_peek(struct capture_reader *reader, uint64_t *time_ns);
/*
 * The packet that was peeked at, in segments if it is larger than a buffer; NULL without memory.
 * `begun` of its metadata is how many bytes are missing, with CAPTURE_SHORT if it ends before them.
 */
struct rte_mbuf *capture_reader_take(struct capture_reader *reader, struct rte_mempool *pool);
#define CAPTURE_SHORT (1u << 31)

struct capture_writer;

/*
 * Write into PATH.part until it is closed; "-" is stdout. Without a format: Ethernet, microseconds.
 * NULL after printing why.
 */
struct capture_writer *capture_writer_open(const char *path, const struct capture_format *format);
/* False after printing why: the disk is full, or the link type has no such frames. */
bool capture_writer_write(struct capture_writer *writer, const struct rte_mbuf *packet,
			  uint64_t time_ns, uint32_t missing);
/* Rename the file into place, or remove it unless it is to be kept; false after printing why. */
bool capture_writer_close(struct capture_writer *writer, bool keep);

/* Packets from and to capture files (pcap or pcapng in, pcap out). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct capture_reader;

/*
 * Open a capture; "-" is stdin. NULL after printing why: not a capture, not of Ethernet, or, of a
 * file, packets that are truncated, each with its number.
 */
struct capture_reader *capture_reader_open(const char *path);
void capture_reader_close(struct capture_reader *reader);

enum capture_next { CAPTURE_PACKET, CAPTURE_END, CAPTURE_FAULT };

/* The time of the next packet, us; CAPTURE_FAULT after printing what is wrong with the file. */
enum capture_next capture_reader_peek(struct capture_reader *reader, uint64_t *time_us);
/* The packet that was peeked at, in segments if it is larger than a buffer; NULL without memory. */
struct rte_mbuf *capture_reader_take(struct capture_reader *reader, struct rte_mempool *pool);

struct capture_writer;

/* Write into PATH.part until it is closed; "-" is stdout. NULL after printing why. */
struct capture_writer *capture_writer_open(const char *path);
/* False after printing why: the disk is full. */
bool capture_writer_write(struct capture_writer *writer, const struct rte_mbuf *packet,
			  uint64_t time_us);
/* Rename the file into place, or remove it unless it is to be kept; false after printing why. */
bool capture_writer_close(struct capture_writer *writer, bool keep);

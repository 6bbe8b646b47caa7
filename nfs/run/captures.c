#include "run/captures.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <pcap/pcap.h>

#define MOST_BYTES 65535
#define MOST_FAULTS 20

struct capture_reader {
	pcap_t *file;
	char *path;
	uint64_t number; /* of the packet that is peeked at, from 1 */
	const struct pcap_pkthdr *header;
	const u_char *bytes;
	bool peeked;
};

static pcap_t *opened(const char *path)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	pcap_t *file = pcap_open_offline(path, why);

	if (!file) {
		/* libpcap names a file that it cannot open, but not one that is no capture */
		fprintf(stderr, "%s%s%s\n", strncmp(why, path, strlen(path)) ? path : "",
			strncmp(why, path, strlen(path)) ? ": " : "", why);
		return NULL;
	}
	if (pcap_datalink(file) == DLT_EN10MB)
		return file;
	fprintf(stderr, "%s: captured from %s, not from Ethernet\n", path,
		pcap_datalink_val_to_name(pcap_datalink(file)));
	pcap_close(file);
	return NULL;
}

static bool is_whole(const char *path, uint64_t number, const struct pcap_pkthdr *header)
{
	if (header->caplen == header->len && header->caplen > 0 && header->caplen <= MOST_BYTES)
		return true;
	fprintf(stderr, "%s: packet %lu: %u of %u bytes were captured\n", path,
		(unsigned long)number, header->caplen, header->len);
	return false;
}

/* Read a file to its end, and print each fault. */
static bool check_file(const char *path)
{
	pcap_t *file = opened(path);
	unsigned int faults = 0;
	struct pcap_pkthdr *header;
	const u_char *bytes;
	uint64_t number = 0;
	int read = PCAP_ERROR;

	if (!file)
		return false;
	while (faults <= MOST_FAULTS && (read = pcap_next_ex(file, &header, &bytes)) == 1)
		faults += !is_whole(path, ++number, header);
	if (read != PCAP_ERROR_BREAK && faults <= MOST_FAULTS) {
		fprintf(stderr, "%s: packet %lu: %s\n", path, (unsigned long)number + 1,
			pcap_geterr(file));
		faults++;
	}
	if (faults > 0)
		fprintf(stderr, "hint: capture whole packets (tcpdump -s 0)\n");
	pcap_close(file);
	return faults == 0;
}

struct capture_reader *capture_reader_open(const char *path)
{
	struct capture_reader *reader;

	if (strcmp(path, "-") != 0 && !check_file(path))
		return NULL;
	reader = calloc(1, sizeof(*reader));
	if (reader) {
		reader->path = strdup(path);
		reader->file = opened(path);
	}
	if (!reader || !reader->path || !reader->file) {
		capture_reader_close(reader);
		return NULL;
	}
	return reader;
}

void capture_reader_close(struct capture_reader *reader)
{
	if (!reader)
		return;
	if (reader->file)
		pcap_close(reader->file);
	free(reader->path);
	free(reader);
}

enum capture_next capture_reader_peek(struct capture_reader *reader, uint64_t *time_us)
{
	struct pcap_pkthdr *header;
	int read;

	if (!reader->peeked) {
		read = pcap_next_ex(reader->file, &header, &reader->bytes);
		if (read == PCAP_ERROR_BREAK)
			return CAPTURE_END;
		reader->number++;
		if (read != 1) {
			fprintf(stderr, "%s: packet %lu: %s\n", reader->path,
				(unsigned long)reader->number, pcap_geterr(reader->file));
			return CAPTURE_FAULT;
		}
		if (!is_whole(reader->path, reader->number, header))
			return CAPTURE_FAULT;
		reader->header = header;
		reader->peeked = true;
	}
	*time_us = (uint64_t)reader->header->ts.tv_sec * 1000000u +
		   (uint64_t)reader->header->ts.tv_usec;
	return CAPTURE_PACKET;
}

/* Append bytes to a packet, in further segments where a buffer is full. */
static bool append(struct rte_mbuf *packet, struct rte_mempool *pool, const u_char *bytes,
		   uint32_t length)
{
	struct rte_mbuf *segment = packet;

	while (length > 0) {
		const uint16_t part =
			(uint16_t)RTE_MIN(length, (uint32_t)rte_pktmbuf_tailroom(segment));
		char *data = rte_pktmbuf_append(segment, part);

		if (!data)
			return false;
		memcpy(data, bytes, part);
		if (segment != packet && rte_pktmbuf_chain(packet, segment) < 0) {
			rte_pktmbuf_free(segment);
			return false;
		}
		bytes += part;
		length -= part;
		if (length > 0 && !(segment = rte_pktmbuf_alloc(pool)))
			return false;
	}
	return true;
}

struct rte_mbuf *capture_reader_take(struct capture_reader *reader, struct rte_mempool *pool)
{
	struct rte_mbuf *packet = rte_pktmbuf_alloc(pool);

	if (!packet)
		return NULL;
	if (!append(packet, pool, reader->bytes, reader->header->caplen)) {
		rte_pktmbuf_free(packet);
		return NULL;
	}
	reader->peeked = false;
	return packet;
}

struct capture_writer {
	pcap_t *format;
	pcap_dumper_t *file;
	char *path, *part; /* part: NULL if it is not renamed */
	bool failed;
};

static void free_writer(struct capture_writer *writer)
{
	if (writer->format)
		pcap_close(writer->format);
	free(writer->path);
	free(writer->part);
	free(writer);
}

/* Whether a file is written aside; stdout, devices and pipes stay what they are. */
static bool is_renamed(const char *path)
{
	struct stat found;

	return strcmp(path, "-") != 0 && (stat(path, &found) < 0 || S_ISREG(found.st_mode));
}

struct capture_writer *capture_writer_open(const char *path)
{
	struct capture_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return NULL;
	writer->path = strdup(path);
	writer->format = pcap_open_dead(DLT_EN10MB, MOST_BYTES);
	if (writer->path && is_renamed(path) && asprintf(&writer->part, "%s.part", path) < 0)
		writer->part = NULL;
	if (writer->format && writer->path)
		writer->file = pcap_dump_open(writer->format, writer->part ? writer->part : path);
	if (writer->file)
		return writer;
	fprintf(stderr, "%s: %s\n", path,
		writer->format ? pcap_geterr(writer->format) : "no memory");
	free_writer(writer);
	return NULL;
}

bool capture_writer_write(struct capture_writer *writer, const struct rte_mbuf *packet,
			  uint64_t time_us)
{
	static u_char all[MOST_BYTES];
	const uint32_t length = RTE_MIN(rte_pktmbuf_pkt_len(packet), (uint32_t)sizeof(all));
	const struct pcap_pkthdr header = {
		.ts = {(time_t)(time_us / 1000000u), (suseconds_t)(time_us % 1000000u)},
		.caplen = length,
		.len = rte_pktmbuf_pkt_len(packet),
	};
	const u_char *bytes = rte_pktmbuf_read(packet, 0, length, all);

	if (writer->failed || !bytes)
		return false;
	pcap_dump((u_char *)writer->file, &header, bytes);
	if (!ferror(pcap_dump_file(writer->file)))
		return true;
	fprintf(stderr, "%s: %s\n", writer->path, strerror(errno));
	writer->failed = true;
	return false;
}

bool capture_writer_close(struct capture_writer *writer, bool keep)
{
	bool written;

	if (!writer)
		return true;
	written = !writer->failed && pcap_dump_flush(writer->file) == 0;
	if (!written && !writer->failed)
		fprintf(stderr, "%s: %s\n", writer->path, strerror(errno));
	pcap_dump_close(writer->file);
	if (writer->part && written && keep && rename(writer->part, writer->path) < 0) {
		fprintf(stderr, "%s: %s\n", writer->path, strerror(errno));
		written = false;
	}
	if (writer->part && !(written && keep))
		unlink(writer->part);
	free_writer(writer);
	return written;
}

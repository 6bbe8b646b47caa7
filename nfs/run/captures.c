#include "run/captures.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <pcap/pcap.h>
#include <zlib.h>

#include "core/metadata.h"
#include "run/links.h"

#define MOST_BYTES 65535
#define MOST_FAULTS 20
#define SECOND_NS UINT64_C(1000000000)

/* A file, as zlib reads it: also one that is not compressed. */
struct stream {
	gzFile file;
	uint8_t head[4]; /* first bytes, which say what a capture is */
	int n, given;    /* of them: read, and given on */
};

/* Bytes for libpcap; -1 where compressed data is damaged or ends early. */
static ssize_t stream_read(void *cookie, char *to, size_t room)
{
	struct stream *stream = cookie;
	int n, error = Z_OK;

	for (n = 0; stream->given < stream->n && (size_t)n < room; n++)
		to[n] = (char)stream->head[stream->given++];
	if (n > 0)
		return n;
	n = gzread(stream->file, to, (unsigned int)room);
	gzerror(stream->file, &error);
	if (n >= 0 && (error == Z_OK || error == Z_STREAM_END))
		return n;
	errno = EIO;
	return n > 0 ? n : -1;
}

static int stream_close(void *cookie)
{
	struct stream *stream = cookie;
	const int result = gzclose(stream->file);

	free(stream);
	return result == Z_OK ? 0 : -1;
}

enum kind { OF_MICROSECONDS, OF_NANOSECONDS, OF_BLOCKS /* pcapng */ };

/* What a capture is by its first bytes, in either order of bytes. */
static enum kind kind_of(const struct stream *stream)
{
	static const uint8_t nanoseconds[2][4] = {{0xa1, 0xb2, 0x3c, 0x4d},
						  {0x4d, 0x3c, 0xb2, 0xa1}};
	static const uint8_t blocks[4] = {0x0a, 0x0d, 0x0d, 0x0a};

	if (memcmp(stream->head, nanoseconds[0], 4) == 0 ||
	    memcmp(stream->head, nanoseconds[1], 4) == 0)
		return OF_NANOSECONDS;
	return memcmp(stream->head, blocks, 4) == 0 ? OF_BLOCKS : OF_MICROSECONDS;
}

struct capture_reader {
	pcap_t *file;
	char *path;
	enum kind kind;
	bool nanoseconds;  /* some times are not whole microseconds */
	const char *reads; /* see capture_reader_open() */
	uint64_t number;   /* of the packet that is peeked at, from 1 */
	struct pcap_pkthdr header;
	const u_char *bytes;
	uint64_t time_ns;
	uint8_t ethernet[LINK_ETHERNET]; /* before the packet, unless it is Ethernet */
	bool peeked;
};

/* What may be wrong with a packet, and what helps. */
enum fault { SOUND, CUT, UNSUITABLE, MIXED, DAMAGED, FAULTS };

static const char *const hints[FAULTS] = {
	[CUT] = "capture whole packets (tcpdump -s 0)",
	[UNSUITABLE] = "convert the capture, or take these packets out of it (editcap)",
	[MIXED] = "capture one interface (tcpdump -i), or where all packets are of one link: "
		  "editcap -T ether -F pcap FILE NEW",
	[DAMAGED] = "the file is damaged, or its writer was stopped: editcap FILE NEW keeps what can "
		    "be read",
};

static FILE *open_stream(const char *path, struct stream **opened)
{
	static const cookie_io_functions_t functions = {.read = stream_read,
							.close = stream_close};
	struct stream *stream = calloc(1, sizeof(*stream));
	FILE *file = NULL;

	if (!stream)
		return NULL;
	stream->file = strcmp(path, "-") == 0 ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(path, "rb");
	if (stream->file) {
		stream->n = RTE_MAX(gzread(stream->file, stream->head, sizeof(stream->head)), 0);
		file = fopencookie(stream, "r", functions);
	}
	if (!file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		if (stream->file)
			gzclose(stream->file);
		free(stream);
	}
	*opened = stream;
	return file;
}

static bool open_file(struct capture_reader *reader, const char *path)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	struct stream *stream;
	FILE *file = open_stream(path, &stream);
	const char *known;
	int link;

	if (!file)
		return false;
	reader->kind = kind_of(stream);
	reader->file = pcap_fopen_offline_with_tstamp_precision(
		file,
		reader->kind == OF_MICROSECONDS ? PCAP_TSTAMP_PRECISION_MICRO
						: PCAP_TSTAMP_PRECISION_NANO,
		why);
	if (!reader->file) {
		fprintf(stderr, "%s: %s\n", path, why);
		fclose(file);
		return false;
	}
	link = pcap_datalink(reader->file);
	if (link_is_known(link, &known))
		return true;
	fprintf(stderr, "%s: captured from %s, not from %s\n", path,
		pcap_datalink_val_to_name(link) ? pcap_datalink_val_to_name(link)
						: "an unknown link",
		known);
	return false;
}

/* The time of a packet: seconds of pcap are unsigned, though libpcap's are not. */
static bool read_time(struct capture_reader *reader)
{
	const uint32_t parts = reader->kind == OF_MICROSECONDS ? 1000000 : SECOND_NS;
	const uint64_t part = (uint64_t)reader->header.ts.tv_usec;
	uint64_t seconds = (uint64_t)reader->header.ts.tv_sec;

	if (reader->kind != OF_BLOCKS)
		seconds = (uint32_t)seconds;
	reader->time_ns = seconds * SECOND_NS + part * (SECOND_NS / parts);
	reader->nanoseconds |= part % (parts / 1000000) != 0;
	if (seconds <= UINT32_MAX && part < parts)
		return true;
	fprintf(stderr, "%s: packet %lu: its time is no time of a capture: %" PRIu64 " s and %" PRIu64
			" parts\n",
		reader->path, (unsigned long)reader->number, seconds, part);
	return false;
}

/* Whether the packet that was read can be taken; prints what is wrong with it. */
static enum fault check_packet(struct capture_reader *reader)
{
	const struct pcap_pkthdr *header = &reader->header;
	const unsigned long number = (unsigned long)reader->number;
	const int link = pcap_datalink(reader->file);

	if (header->caplen == 0 || header->caplen > header->len || header->len > MOST_BYTES) {
		fprintf(stderr, "%s: packet %lu: %u of %u bytes were captured\n", reader->path,
			number, header->caplen, header->len);
		return header->len > MOST_BYTES ? UNSUITABLE : CUT;
	}
	if (header->caplen < header->len && reader->reads) {
		fprintf(stderr,
			"%s: packet %lu: %u of %u bytes were captured, and %s reads all\n",
			reader->path, number, header->caplen, header->len, reader->reads);
		return CUT;
	}
	if (link != DLT_EN10MB &&
	    link_to_ethernet(link, reader->bytes, header->caplen, reader->ethernet) < 0) {
		fprintf(stderr, "%s: packet %lu: no frame of %s\n", reader->path, number,
			pcap_datalink_val_to_name(link));
		return UNSUITABLE;
	}
	return read_time(reader) ? SOUND : DAMAGED;
}

/* Read the next packet. */
static enum capture_next read_next(struct capture_reader *reader, enum fault *fault)
{
	struct pcap_pkthdr *header;
	const int read = pcap_next_ex(reader->file, &header, &reader->bytes);

	*fault = SOUND;
	if (read == PCAP_ERROR_BREAK)
		return CAPTURE_END;
	reader->number++;
	if (read == 1) {
		reader->header = *header;
		*fault = check_packet(reader);
		return *fault == SOUND ? CAPTURE_PACKET : CAPTURE_FAULT;
	}
	fprintf(stderr, "%s: packet %lu: %s\n", reader->path, (unsigned long)reader->number,
		pcap_geterr(reader->file));
	*fault = strstr(pcap_geterr(reader->file), "different from the") ? MIXED : DAMAGED;
	reader->number = 0; /* there is no next one */
	return CAPTURE_FAULT;
}

/* Read a file to its end, and print each fault, then what helps against each kind. */
static bool check_file(struct capture_reader *reader)
{
	bool found[FAULTS] = {false};
	unsigned int faults = 0;
	enum capture_next next;
	enum fault fault;

	do {
		next = read_next(reader, &fault);
		faults += next == CAPTURE_FAULT;
		found[fault] = true;
	} while (next != CAPTURE_END && reader->number > 0 && faults <= MOST_FAULTS);
	for (fault = CUT; fault < FAULTS; fault++)
		if (found[fault])
			fprintf(stderr, "hint: %s\n", hints[fault]);
	return faults == 0;
}

struct capture_reader *capture_reader_open(const char *path, const char *reads)
{
	struct capture_reader *reader = calloc(1, sizeof(*reader));
	bool good = reader != NULL;

	if (good) {
		reader->reads = reads;
		reader->path = strdup(path);
		good = reader->path && open_file(reader, path);
	}
	if (good && strcmp(path, "-") != 0) {
		good = check_file(reader);
		pcap_close(reader->file);
		reader->file = NULL;
		reader->number = 0;
		good = good && open_file(reader, path);
	} else if (good) {
		reader->nanoseconds = true; /* of pcapng: nobody knows yet */
	}
	if (good)
		return reader;
	capture_reader_close(reader);
	return NULL;
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

struct capture_format capture_reader_format(const struct capture_reader *reader)
{
	return (struct capture_format){
		.link = pcap_datalink(reader->file),
		.nanoseconds = reader->kind == OF_NANOSECONDS ||
			       (reader->kind == OF_BLOCKS && reader->nanoseconds),
		.snap_length = pcap_snapshot(reader->file),
	};
}

enum capture_next capture_reader_peek(struct capture_reader *reader, uint64_t *time_ns)
{
	enum fault fault;

	if (!reader->peeked) {
		const enum capture_next next = read_next(reader, &fault);

		if (fault != SOUND)
			fprintf(stderr, "hint: %s\n", hints[fault]);
		if (next != CAPTURE_PACKET)
			return next;
		reader->peeked = true;
	}
	*time_ns = reader->time_ns;
	return CAPTURE_PACKET;
}

/* Append bytes to a packet, zeros if there are none, in further segments where a buffer is full. */
static bool append(struct rte_mbuf *packet, struct rte_mempool *pool, const u_char *bytes,
		   uint32_t length)
{
	while (length > 0) {
		const uint16_t part = (uint16_t)RTE_MIN(
			length, (uint32_t)rte_pktmbuf_tailroom(rte_pktmbuf_lastseg(packet)));

		if (part == 0) {
			struct rte_mbuf *segment = rte_pktmbuf_alloc(pool);

			if (!segment)
				return false;
			if (rte_pktmbuf_chain(packet, segment) < 0) {
				rte_pktmbuf_free(segment);
				return false;
			}
			continue;
		}
		char *data = rte_pktmbuf_append(packet, part);

		if (bytes)
			memcpy(data, bytes, part);
		else
			memset(data, 0, part);
		bytes = bytes ? bytes + part : NULL;
		length -= part;
	}
	return true;
}

/* The packet, with `zeros` behind what was captured; NULL without memory. */
static struct rte_mbuf *make_packet(const struct capture_reader *reader, struct rte_mempool *pool,
				    uint32_t zeros)
{
	const int link = pcap_datalink(reader->file);
	struct rte_mbuf *packet = rte_pktmbuf_alloc(pool);
	uint8_t ethernet[LINK_ETHERNET];
	int header = 0;

	if (!packet)
		return NULL;
	if (link != DLT_EN10MB)
		header = link_to_ethernet(link, reader->bytes, reader->header.caplen, ethernet);
	if ((link == DLT_EN10MB || append(packet, pool, ethernet, sizeof(ethernet))) &&
	    append(packet, pool, reader->bytes + header, reader->header.caplen - (uint32_t)header) &&
	    append(packet, pool, NULL, zeros))
		return packet;
	rte_pktmbuf_free(packet);
	return NULL;
}

/* Whether a packet whose last bytes are unknown is none of a fragment, and has all its headers. */
static bool has_headers(struct rte_mbuf *packet, uint32_t missing)
{
	const struct packet headers = packet_behind_extensions(packet, packet_parse_any(packet));
	uint32_t end;

	if (!packet_has_flow(&headers) || headers.fragment)
		return false;
	end = headers.payload;
	if (headers.l4 == 0 && headers.type == PACKET_IPV4)
		end = headers.l3 + rte_ipv4_hdr_len(packet_ipv4(packet, &headers));
	else if (headers.l4 == 0)
		return false; /* of IPv6, the end of the headers is not known */
	return end + missing <= rte_pktmbuf_pkt_len(packet);
}

struct rte_mbuf *capture_reader_take(struct capture_reader *reader, struct rte_mempool *pool)
{
	const uint32_t missing = reader->header.len - reader->header.caplen;
	struct rte_mbuf *packet = make_packet(reader, pool, missing);
	uint32_t begun = missing;

	if (packet && missing > 0 && !has_headers(packet, missing)) {
		rte_pktmbuf_free(packet);
		packet = make_packet(reader, pool, 0);
		begun |= CAPTURE_SHORT;
	}
	if (!packet)
		return NULL;
	metadata_of(packet)->begun = begun;
	reader->peeked = false;
	return packet;
}

struct capture_writer {
	pcap_t *format;
	pcap_dumper_t *file;
	char *path, *part; /* part: NULL if it is not renamed */
	uint64_t unit_ns;  /* of times */
	uint32_t most;	   /* bytes of a packet, so far */
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

struct capture_writer *capture_writer_open(const char *path, const struct capture_format *format)
{
	static const struct capture_format usual = {DLT_EN10MB, false, MOST_BYTES};
	struct capture_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return NULL;
	if (!format)
		format = &usual;
	writer->path = strdup(path);
	writer->unit_ns = format->nanoseconds ? 1 : 1000;
	writer->format = pcap_open_dead_with_tstamp_precision(
		format->link, format->snap_length,
		format->nanoseconds ? PCAP_TSTAMP_PRECISION_NANO : PCAP_TSTAMP_PRECISION_MICRO);
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

/* Write a frame with the header of its link in place of Ethernet's. Returns the bytes, or -1. */
static int put_link_header(const struct capture_writer *writer, const u_char *frame,
			   u_char header[LINK_MOST])
{
	const int link = pcap_datalink(writer->format);
	const int n = link_from_ethernet(link, frame, header);

	if (n < 0)
		fprintf(stderr,
			"%s: a frame of type %02x%02x is none of %s\n"
			"hint: convert the input to Ethernet, or leave the output out\n",
			writer->path, frame[12], frame[13], pcap_datalink_val_to_name(link));
	return n;
}

bool capture_writer_write(struct capture_writer *writer, const struct rte_mbuf *packet,
			  uint64_t time_ns, uint32_t missing)
{
	static u_char all[LINK_MOST + MOST_BYTES];
	u_char *frame = all + LINK_MOST;
	const uint32_t length = RTE_MIN(rte_pktmbuf_pkt_len(packet), (uint32_t)MOST_BYTES);
	const u_char *bytes = rte_pktmbuf_read(packet, 0, length, frame);
	struct pcap_pkthdr header = {
		.ts = {(time_t)(time_ns / SECOND_NS),
		       (suseconds_t)(time_ns % SECOND_NS / writer->unit_ns)},
		.caplen = length,
		.len = rte_pktmbuf_pkt_len(packet),
	};

	if (writer->failed || !bytes)
		return false;
	if (missing & CAPTURE_SHORT)
		header.len += missing & ~CAPTURE_SHORT;
	else
		header.caplen -= RTE_MIN(missing, header.caplen);
	if (pcap_datalink(writer->format) != DLT_EN10MB) {
		u_char link[LINK_MOST];
		int n;

		if (length < LINK_ETHERNET || (n = put_link_header(writer, bytes, link)) < 0) {
			writer->failed = true;
			return false;
		}
		memmove(frame, bytes, length);
		bytes = frame + LINK_ETHERNET - n;
		memcpy(frame + LINK_ETHERNET - n, link, (size_t)n);
		header.caplen += (uint32_t)n - RTE_MIN(header.caplen, (uint32_t)LINK_ETHERNET);
		header.len += (uint32_t)n - LINK_ETHERNET;
	}
	writer->most = RTE_MAX(writer->most, header.caplen);
	pcap_dump((u_char *)writer->file, &header, bytes);
	if (!ferror(pcap_dump_file(writer->file)))
		return true;
	fprintf(stderr, "%s: %s\n", writer->path, strerror(errno));
	writer->failed = true;
	return false;
}

/* Raise the snap length to the largest packet, where a file can: readers cut those above it. */
static void raise_snap_length(const struct capture_writer *writer)
{
	FILE *file = pcap_dump_file(writer->file);

	if (writer->most > (uint32_t)pcap_snapshot(writer->format) &&
	    fseek(file, offsetof(struct pcap_file_header, snaplen), SEEK_SET) == 0)
		fwrite(&writer->most, sizeof(writer->most), 1, file);
}

bool capture_writer_close(struct capture_writer *writer, bool keep)
{
	bool written;

	if (!writer)
		return true;
	if (!writer->failed)
		raise_snap_length(writer);
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

/* Streams of TCP: what a reader gets of segments, and what is left out, differs, or has no room. */
#include <rte_random.h>

#include "core/stream.h"
#include "tests/support.h"

#define BEGIN 0xfffff000u /* so that numbers come round */
#define LENGTH 20000

/* What a reader got. */
struct reading {
	struct streams streams;
	struct stream *stream;
	uint8_t text[LENGTH], got[LENGTH];
	uint32_t n;
	uint32_t skip_at, skip, skipped; /* left out once so many bytes are read */
	uint32_t keep;          /* bytes that are left unread */
};

static const struct flow_key key = {.source = 1, .source_port = 2, .protocol = IPPROTO_TCP};

static bool read_all(void *context, struct stream *stream)
{
	struct reading *reading = context;

	while (stream->have - stream->read > (int)reading->keep) {
		uint16_t n = stream->have - stream->read - (uint16_t)reading->keep;
		const bool skips = reading->skip > 0 && reading->n + n >= reading->skip_at;

		if (skips)
			n = (uint16_t)(reading->skip_at - reading->n);
		memcpy(reading->got + reading->n,
		       stream_bytes(&reading->streams, stream) + stream->read, n);
		reading->n += n;
		stream->read += n;
		if (!skips)
			continue;
		stream_skip(&reading->streams, stream, reading->skip);
		reading->skipped = reading->skip;
		reading->skip = 0;
	}
	return true;
}

static struct reading *begin(uint64_t seed)
{
	static struct reading reading;

	reading = (struct reading){.n = 0};
	rte_srand(seed);
	for (uint32_t i = 0; i < LENGTH; i++)
		reading.text[i] = (uint8_t)rte_rand();
	assert_int_equal(streams_create(&reading.streams, "test", 4), 0);
	reading.stream = streams_follow(&reading.streams, &key, 0, BEGIN, false, 1);
	assert_non_null(reading.stream);
	assert_ptr_equal(streams_find(&reading.streams, &key), reading.stream);
	return &reading;
}

static enum stream_result take(struct reading *reading, uint32_t from, uint32_t to)
{
	return stream_take(&reading->streams, reading->stream,
			   (struct stream_segment){BEGIN + from, to - from, reading->text + from},
			   read_all, reading);
}

/* Take segments of some bytes in a random order, again and again as senders do, until all came. */
static void take_in_any_order(struct reading *reading, uint32_t window)
{
	for (uint32_t at = 0; at < LENGTH;) {
		const uint32_t from = at + (uint32_t)rte_rand_max(window),
			       to = from + 1 + (uint32_t)rte_rand_max(1460);

		take(reading, RTE_MIN(from, (uint32_t)LENGTH - 1), RTE_MIN(to, (uint32_t)LENGTH));
		if (rte_rand_max(8) == 0)
			take(reading, at, RTE_MIN(at + 700, (uint32_t)LENGTH));
		at = reading->n + reading->skipped;
	}
}

TEST(a_reader_gets_all_bytes_in_their_order)
{
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct reading *reading = begin(seed);

		take_in_any_order(reading, seed % 2 ? 3000 : 9000);
		assert_int_equal(reading->n, LENGTH);
		assert_memory_equal(reading->got, reading->text, LENGTH);
		streams_destroy(&reading->streams);
	}
}

TEST(what_is_left_out_is_not_read_and_nothing_else)
{
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct reading *reading = begin(seed);
		const uint32_t at = 1 + (uint32_t)rte_rand_max(5000),
			       skip = 1 + (uint32_t)rte_rand_max(9000);

		reading->skip_at = at;
		reading->skip = skip;
		take_in_any_order(reading, 3000);
		assert_int_equal(reading->n, LENGTH - skip);
		assert_memory_equal(reading->got, reading->text, at);
		assert_memory_equal(reading->got + at, reading->text + at + skip,
				    LENGTH - at - skip);
		streams_destroy(&reading->streams);
	}
}

/* Bytes that repeat others otherwise are noticed: read ones, waiting ones and those ahead. */
TEST(other_bytes_differ)
{
	struct reading *reading = begin(1);

	reading->keep = 10;
	assert_int_equal(take(reading, 0, 100), STREAM_TAKEN);
	assert_int_equal(take(reading, 300, 400), STREAM_TAKEN);
	for (uint32_t at = 0; at < 400; at += at == 99 ? 201 : 1) {
		reading->text[at] ^= 1;
		assert_int_equal(take(reading, at, at + 1), STREAM_DIFFERS);
		reading->text[at] ^= 1;
	}
	reading->text[350] ^= 1;
	assert_int_equal(take(reading, 290, 380), STREAM_DIFFERS);
	assert_int_equal(take(reading, 340, 410), STREAM_DIFFERS);
	streams_destroy(&reading->streams);
}

/* A byte that asks whether the other end is there is one of these, as that may not have the first.
 */
TEST(other_keepalives_differ)
{
	struct reading *reading = begin(1);

	assert_int_equal(take(reading, 0, 100), STREAM_TAKEN);
	assert_int_equal(take(reading, 99, 100), STREAM_TAKEN);
	reading->text[99] ^= 1;
	assert_int_equal(take(reading, 99, 100), STREAM_DIFFERS);
	streams_destroy(&reading->streams);
}

TEST(a_buffer_has_limits)
{
	struct reading *reading = begin(1);

	assert_int_equal(take(reading, STREAM_BYTES, STREAM_BYTES + 1), STREAM_OUTSIDE);
	for (uint32_t part = 1; part <= STREAM_PARTS; part++)
		assert_int_equal(take(reading, part * 100, part * 100 + 1), STREAM_TAKEN);
	assert_int_equal(take(reading, 900, 901), STREAM_OUTSIDE);
	assert_int_equal(take(reading, 201, 301), STREAM_TAKEN); /* joins two of them */
	assert_int_equal(take(reading, 900, 901), STREAM_TAKEN);
	reading->keep = LENGTH;
	assert_int_equal(take(reading, 0, STREAM_BYTES), STREAM_TAKEN);
	assert_int_equal(take(reading, STREAM_BYTES, STREAM_BYTES + 1), STREAM_OVERLONG);
	assert_int_equal(reading->n, 0);
	streams_destroy(&reading->streams);
}

/* One that is followed begins again, also where its flow was lost before. */
TEST(a_stream_that_is_followed_is_not_refused)
{
	struct reading *reading = begin(1);
	struct flow_key other = key;

	reading->streams.refuses = 2;
	reading->stream->unfinished = true;
	for (uint16_t i = 1; i < 5; i++) {
		other.source_port = 10 + i;
		assert_non_null(
			streams_follow(&reading->streams, &other, i, 0, true, STREAM_WAIT_US + 1));
	}
	assert_null(streams_follow(&reading->streams, &key, 0, 0, false, STREAM_WAIT_US + 1));
	reading->stream = streams_follow(&reading->streams, &key, 0, 0, true, STREAM_LOST_US);
	assert_non_null(reading->stream);
	assert_ptr_equal(streams_follow(&reading->streams, &key, 0, 7, false, STREAM_LOST_US),
			 reading->stream);
	assert_int_equal(reading->stream->begin, 7);
	streams_destroy(&reading->streams);
}

/* Where all streams are used, one that waits is not given up for another one, until servers do. */
TEST(streams_that_wait_are_kept)
{
	struct reading *reading = begin(1);
	struct flow_key keys[5] = {key, key, key, key, key};

	reading->keep = LENGTH;
	reading->stream->begun = true;
	for (uint16_t i = 1; i < 5; i++)
		keys[i].source_port = 10 + i;
	assert_int_equal(take(reading, 0, 1), STREAM_TAKEN);
	for (uint16_t i = 1; i < 4; i++)
		assert_non_null(streams_follow(&reading->streams, &keys[i], i, 0, false, 2));
	assert_non_null(streams_follow(&reading->streams, &keys[4], 4, 0, false, 2));
	assert_ptr_equal(streams_find(&reading->streams, &key), reading->stream);
	for (uint16_t i = 1; i < 5; i++) {
		struct stream *stream = streams_find(&reading->streams, &keys[i]);

		if (!stream)
			continue;
		stream->begun = true;
		stream->have = 1;
	}
	keys[0].source_port = 99;
	assert_null(streams_follow(&reading->streams, &keys[0], 9, 0, false, STREAM_WAIT_US));
	assert_non_null(streams_follow(&reading->streams, &keys[0], 9, 0, false, STREAM_WAIT_US + 2));
	streams_destroy(&reading->streams);
}

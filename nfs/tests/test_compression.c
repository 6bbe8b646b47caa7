/* Every compression backend, checked with zlib's inflate. */
#include "tests/offloading.h"

#include <errno.h>
#include <string.h>

#include <zlib.h>

#include "accelerators/accelerator.h"

#define MOST 2048

static struct accelerator *accelerator;
static struct accelerator_queue *queue;

/* Attach a queue of the backend in `state`; skip the test if it is not installed. */
static int open_queue(void **state)
{
	accelerator = accelerator_create_by(*state);
	queue = accelerator ? accelerator_attach(accelerator, 8) : NULL;
	return accelerator && !queue ? -1 : 0;
}

static int close_queue(void **state)
{
	(void)state;
	accelerator_detach(queue);
	accelerator_destroy(accelerator);
	return 0;
}

static struct accelerator_job compressed(const uint8_t *input, uint32_t length, uint8_t *output,
					 uint32_t room)
{
	struct accelerator_job job = {
		.input = input, .length = length, .output = output, .room = room};

	queue_run(queue, &job);
	return job;
}

/* Whether raw DEFLATE data decompresses to these bytes. */
static bool inflates_to(const uint8_t *data, uint32_t length, const uint8_t *bytes, uint32_t n)
{
	uint8_t out[MOST];
	z_stream stream = {.next_in = (Bytef *)(uintptr_t)data,
			   .avail_in = length,
			   .next_out = out,
			   .avail_out = sizeof(out)};
	int result;

	assert_int_equal(inflateInit2(&stream, -15), Z_OK);
	result = inflate(&stream, Z_FINISH);
	inflateEnd(&stream);
	return result == Z_STREAM_END && stream.avail_in == 0 && stream.total_out == n &&
	       memcmp(out, bytes, n) == 0;
}

static void fill_text(uint8_t *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)"the quick brown fox "[i % 20];
}

static void fill_noise(uint8_t *bytes, uint32_t n)
{
	unsigned int seed = n;

	for (uint32_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(rand_r(&seed) >> 7);
}

/* Compressed data decompresses to the original, for any length and content. */
static void payloads_decompress_to_the_original(void **state)
{
	uint8_t input[1500], output[MOST];

	(void)state;
	if (!queue)
		skip();
	for (uint32_t length = 1; length <= sizeof(input); length += 37) {
		struct accelerator_job job;

		fill_text(input, length);
		job = compressed(input, length, output, sizeof(output));
		assert_int_equal(job.status, 0);
		assert_true(inflates_to(output, job.produced, input, length));
		assert_true(length < 200 || job.produced < length / 2);
		fill_noise(input, length);
		job = compressed(input, length, output, sizeof(output));
		assert_int_equal(job.status, 0);
		assert_true(inflates_to(output, job.produced, input, length));
	}
}

/* Random bytes do not shrink: the job fails with -ENOSPC and writes nothing beyond the buffer. */
static void incompressible_payloads_fail(void **state)
{
	uint8_t input[1024], output[MOST];

	(void)state;
	if (!queue)
		skip();
	memset(output, 0x5a, sizeof(output));
	fill_noise(input, sizeof(input));
	for (uint32_t room = 1; room < sizeof(input); room += 11) {
		assert_int_equal(compressed(input, sizeof(input), output, room).status, -ENOSPC);
		assert_int_equal(output[room], 0x5a);
	}
	fill_text(input, sizeof(input)); /* and the next job is not affected */
	assert_int_equal(compressed(input, sizeof(input), output, 512).status, 0);
}

#define WITH(backend, test) {backend " " #test, test, open_queue, close_queue, backend}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WITH("compress_isal", payloads_decompress_to_the_original),
		WITH("compress_isal", incompressible_payloads_fail),
		WITH("compress_zlib", payloads_decompress_to_the_original),
		WITH("compress_zlib", incompressible_payloads_fail),
		WITH("deflate", payloads_decompress_to_the_original),
		WITH("deflate", incompressible_payloads_fail),
	};

	return argc > 0 ? test_main(argv[0], tests, RTE_DIM(tests)) : 1;
}

/*
 * fuzz_captures: reads the fuzzer's bytes as a capture, and writes what is read in its format.
 *
 * What a reader refuses must be refused without harm; what it reads leaves in packets whose bytes
 * are all there, with times that a capture can hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/mman.h>

#include <rte_errno.h>

#include "core/metadata.h"
#include "run/captures.h"
#include "tests/one_core.h"

static struct rte_mempool *pool;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void fail(const char *what)
{
	fprintf(stderr, "fuzz_captures: %s: %s\n", what, rte_strerror(rte_errno));
	abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	if (!start_on_one_core((*argv)[0], "256"))
		abort();
	if (metadata_register() < 0)
		fail("no metadata");
	pool = rte_pktmbuf_pool_create("packets", 127, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	if (!pool)
		fail("no packets");
	return 0;
}

/* Read all packets, and write them. */
static void copy(struct capture_reader *reader)
{
	const struct capture_format format = capture_reader_format(reader);
	struct capture_writer *writer = capture_writer_open("/dev/shm/fuzz_captures", &format);
	const char *why;
	uint64_t time_ns;

	while (capture_reader_peek(reader, &time_ns) == CAPTURE_PACKET) {
		struct rte_mbuf *packet = capture_reader_take(reader, pool);

		if (!packet)
			break;
		if (rte_mbuf_check(packet, 1, &why) < 0)
			fail(why);
		if (writer)
			capture_writer_write(writer, packet, time_ns,
					     metadata_of(packet)->begun & ~CAPTURE_SHORT);
		rte_pktmbuf_free(packet);
	}
	if (writer)
		capture_writer_close(writer, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const int file = memfd_create("capture", 0);
	struct capture_reader *reader;
	char path[32];

	if (file < 0 || write(file, bytes, size) != (ssize_t)size)
		fail("no file");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	reader = capture_reader_open(path, size % 2 ? "fuzz" : NULL);
	if (reader) {
		copy(reader);
		capture_reader_close(reader);
	}
	close(file);
	if (rte_mempool_in_use_count(pool))
		fail("a packet leaked");
	return 0;
}

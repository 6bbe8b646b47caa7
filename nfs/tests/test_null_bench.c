#include "core/bench.h"
#include "tests/support.h"

/* It needs no parameters and does the same work in every step. */
TEST(does_the_same_every_step)
{
	struct bench *bench = bench_create("null-bench", NULL, NULL, 0);

	assert_non_null(bench);
	for (int i = 0; i < 100; i++)
		assert_int_equal(bench_step(bench), 1024);
	bench_destroy(bench);
}

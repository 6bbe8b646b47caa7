#include "core/bench.h"
#include "tests/support.h"

/* It needs no parameters and does the same work in every step. */
static void does_the_same_every_step(void **state)
{
	struct bench *bench = bench_create("null-bench", NULL, NULL, 0);

	(void)state;
	assert_non_null(bench);
	for (int i = 0; i < 100; i++)
		assert_int_equal(bench_step(bench), 1024);
	bench_destroy(bench);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(does_the_same_every_step)};

	return argc > 0 ? test_main(argv[0], tests, RTE_DIM(tests)) : 1;
}

#include "tests/bench_with_engine.h"

static const enum accelerator_kind uses = ACCELERATOR_COMPRESSION;

/* It keeps the given rate. */
static void keeps_its_rate(void **state)
{
	const struct nf_setting settings[] = {{"rate_kpps", 20}, {"packet_size", 300}};

	(void)state;
	check_requests("compression-bench", uses, settings, 2, 20e3);
}

/* Without a rate, each completion makes room for the next request. */
static void unlimited_rate_never_waits(void **state)
{
	const struct nf_setting settings[] = {{"packet_size", 64}, {"window", 4}};

	(void)state;
	check_unlimited_rate("compression-bench", uses, settings, 2);
}

/* Parameters out of range are rejected. */
static void rejects_bad_parameters(void **state)
{
	const struct nf_setting small[] = {{"packet_size", 63}}, fast[] = {{"rate_kpps", 1e9}};

	(void)state;
	check_rejected("compression-bench", uses, small);
	check_rejected("compression-bench", uses, fast);
	assert_null(bench_create("compression-bench", NULL, NULL, 0));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_its_rate),
		cmocka_unit_test(unlimited_rate_never_waits),
		cmocka_unit_test(rejects_bad_parameters),
	};

	return argc > 0 ? test_main(argv[0], tests, RTE_DIM(tests)) : 1;
}

#include "tests/bench_with_engine.h"

static const enum accelerator_kind uses = ACCELERATOR_REGEX;

/* It keeps the given rate. */
static void keeps_its_rate(void **state)
{
	const struct nf_setting settings[] = {{"rate_kpps", 20}, {"packet_size", 300}};

	(void)state;
	check_requests("regex-bench", uses, settings, 2, 20e3);
}

/* Without a rate, each completion makes room for the next request. */
static void unlimited_rate_never_waits(void **state)
{
	const struct nf_setting settings[] = {{"mtbr", 0}, {"packet_size", 64}, {"window", 4}};

	(void)state;
	check_unlimited_rate("regex-bench", uses, settings, 3);
}

/* Parameters out of range are rejected. */
static void rejects_bad_parameters(void **state)
{
	const struct nf_setting small[] = {{"packet_size", 63}}, fast[] = {{"rate_kpps", 1e9}};

	(void)state;
	check_rejected("regex-bench", uses, small);
	check_rejected("regex-bench", uses, fast);
	assert_null(bench_create("regex-bench", NULL, NULL, 0));
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

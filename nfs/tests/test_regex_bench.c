#include "tests/bench_with_engine.h"

static const enum accelerator_kind uses = ACCELERATOR_REGEX;

/* It keeps the given rate. */
TEST(keeps_its_rate)
{
	check_requests("regex-bench", uses,
		       SETTINGS({"rate_kpps", 20}, {"packet_size", 300}), 20e3);
}

/* Without a rate, each completion makes room for the next request. */
TEST(unlimited_rate_never_waits)
{
	check_unlimited_rate("regex-bench", uses,
			     SETTINGS({"mtbr", 0}, {"packet_size", 64}, {"window", 4}));
}

/* Parameters out of range are rejected. */
TEST(rejects_bad_parameters)
{
	const struct nf_setting small[] = {{"packet_size", 63}}, fast[] = {{"rate_kpps", 1e9}};

	check_rejected("regex-bench", uses, small);
	check_rejected("regex-bench", uses, fast);
	assert_null(bench_create("regex-bench", NULL, NULL, 0));
}

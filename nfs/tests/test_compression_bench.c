#include "tests/bench_with_engine.h"

static const enum accelerator_kind uses = ACCELERATOR_COMPRESSION;

/* It keeps the given rate. */
TEST(keeps_its_rate)
{
	check_requests("compression-bench", uses,
		       SETTINGS({"rate_kpps", 20}, {"packet_size", 300}), 20e3);
}

/* Without a rate, each completion makes room for the next request. */
TEST(unlimited_rate_never_waits)
{
	check_unlimited_rate("compression-bench", uses,
			     SETTINGS({"packet_size", 64}, {"window", 4}));
}

/* Parameters out of range are rejected. */
TEST(rejects_bad_parameters)
{
	const struct nf_setting small[] = {{"packet_size", 63}}, fast[] = {{"rate_kpps", 1e9}};

	check_rejected("compression-bench", uses, small);
	check_rejected("compression-bench", uses, fast);
	assert_null(bench_create("compression-bench", NULL, NULL, 0));
}

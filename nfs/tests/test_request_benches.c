/* Every bench that sends requests to an accelerator, as far as this build has its engine. */
#include <strings.h>

#include "accelerators/accelerator.h"
#include "tests/rate.h"

typedef void check_of_bench(const char *name, struct accelerator *const *accelerators);

static void check_each(check_of_bench *check)
{
	unsigned int checked = 0;

	for (const struct bench_kind *kind = bench_first(); kind; kind = kind->next) {
		struct accelerator *accelerators[ACCELERATOR_KINDS] = {NULL};
		const int uses = ffs((int)kind->accelerators) - 1;

		if (uses >= 0)
			accelerators[uses] = accelerator_create((enum accelerator_kind)uses);
		if (uses < 0 || !accelerators[uses])
			continue;
		check(kind->name, accelerators);
		accelerator_destroy(accelerators[uses]);
		checked++;
	}
	if (checked == 0)
		skip();
}

static void check_rate_kept(const char *name, struct accelerator *const *accelerators)
{
	struct bench *bench =
		bench_create(name, accelerators, SETTINGS({"rate_kpps", 20}, {"packet_size", 300}));

	assert_non_null(bench);
	check_rate(bench, 20e3);
	bench_destroy(bench);
}

/* Each keeps the given rate. */
TEST(keep_their_rate)
{
	check_each(check_rate_kept);
}

static void check_unlimited(const char *name, struct accelerator *const *accelerators)
{
	struct bench *bench =
		bench_create(name, accelerators, SETTINGS({"packet_size", 64}, {"window", 4}));
	uint64_t done = 0;

	assert_non_null(bench);
	for (int i = 0; i < 2000; i++)
		done += bench_step(bench);
	assert_true(done >= 1000); /* with a card, not every step completes one */
	bench_destroy(bench);
}

/* Without a rate, each completion makes room for the next request. */
TEST(unlimited_rate_never_waits)
{
	check_each(check_unlimited);
}

static void check_rejections(const char *name, struct accelerator *const *accelerators)
{
	assert_null(bench_create(name, accelerators, SETTINGS({"packet_size", 63})));
	assert_null(bench_create(name, accelerators, SETTINGS({"rate_kpps", 1e9})));
	assert_null(bench_create(name, NULL, NULL, 0));
}

/* Parameters out of range are rejected. */
TEST(reject_bad_parameters)
{
	check_each(check_rejections);
}

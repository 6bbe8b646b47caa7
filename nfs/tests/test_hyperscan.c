#include "tests/offloading.h"

#include <string.h>

#include "accelerators/accelerator.h"
#include "core/rules.h"

static struct accelerator *accelerator;
static struct accelerator_queue *queue;

static int open_queue(void **state)
{
	(void)state;
	accelerator = accelerator_create(ACCELERATOR_REGEX);
	assert_non_null(accelerator);
	queue = accelerator_attach(accelerator, 8);
	assert_non_null(queue);
	return 0;
}

static int close_queue(void **state)
{
	(void)state;
	accelerator_detach(queue);
	accelerator_destroy(accelerator);
	return 0;
}

static struct accelerator_job scanned(const char *payload, size_t length)
{
	struct accelerator_job job = {.input = (const uint8_t *)payload,
				      .length = (uint32_t)length};

	queue_run(queue, &job);
	assert_int_equal(job.status, 0);
	return job;
}

/* A rule's witness is one match of that rule, also if it occurs twice. */
TEST_WITH(a_rule_matches_once_per_payload, void *none, open_queue, close_queue)
{
	unsigned int n;
	const struct rule *all = rules(&n);
	char twice[256];

	for (unsigned int i = 0; i < n; i++) {
		int length =
			snprintf(twice, sizeof(twice), "%s  %s", all[i].witness, all[i].witness);
		struct accelerator_job job = scanned(twice, (size_t)length);

		assert_int_equal(job.produced, 1);
		assert_int_equal(job.rule, i);
	}
}

/* Of several matching rules the lowest is reported, with the number of rules. */
TEST_WITH(lowest_rule_is_reported, void *none, open_queue, close_queue)
{
	unsigned int n;
	const struct rule *all = rules(&n);
	struct accelerator_job job;
	char payload[256];
	int length;

	length = snprintf(payload, sizeof(payload), "%s--%s--%s", all[n - 1].witness,
			  all[2].witness, all[7].witness);
	job = scanned(payload, (size_t)length);
	assert_int_equal(job.produced, 3);
	assert_int_equal(job.rule, 2);
}

/* A payload without a match, or an empty one, reports no rule. */
TEST_WITH(no_match_reports_no_rule, void *none, open_queue, close_queue)
{
	struct accelerator_job job = scanned("nothing of note", 15);

	assert_int_equal(job.produced, 0);
	assert_int_equal(job.rule, -1);
	job = scanned("", 0);
	assert_int_equal(job.produced, 0);
	assert_int_equal(job.rule, -1);
}

/* Accelerators share the compiled rules: destroying one leaves them to the others. */
TEST_WITH(a_destroyed_accelerator_leaves_the_rules, void *none, open_queue, close_queue)
{
	unsigned int n;
	const char *witness = rules(&n)[0].witness;

	accelerator_destroy(accelerator_create_by("hyperscan"));
	assert_int_equal(scanned(witness, strlen(witness)).produced, 1);
}

#include <errno.h>

#include "accelerators/accelerator.h"
#include "tests/doca/fake_card.h"
#include "tests/support.h"

#define JOBS 128

static const char *const names[] = {"doca-compress", "doca-regex"};

static const struct accelerator_backend *named(const char *name)
{
	const struct accelerator_backend *backend = backend_first();

	while (backend && strcmp(backend->name, name) != 0)
		backend = backend->next;
	assert_non_null(backend);
	return backend;
}

static const struct accelerator_backend *backend;
static void *engine;

static void start(const char *name)
{
	fake_card = (struct fake_card){0};
	backend = named(name);
	engine = backend->create();
	assert_non_null(engine);
}

/* Check that every resource was freed and no call came in a forbidden order. */
static void check_ended(void)
{
	const struct fake_card none = {0};

	assert_int_equal(fake_card.wrong, 0);
	fake_card.steps = fake_card.failing = 0;
	fake_card.breaking = false;
	assert_memory_equal(&fake_card, &none, sizeof(none));
}

static void end(void)
{
	backend->destroy(engine);
	check_ended();
}

/* If a step fails, all earlier steps are undone in an order that DOCA allows. */
TEST(failed_steps_are_undone)
{
	for (size_t i = 0; i < RTE_DIM(names); i++) {
		start(names[i]);
		const unsigned int steps = fake_card.steps;

		end();
		assert_true(steps > 2 * JOBS);
		for (unsigned int failing = 1; failing <= steps; failing++) {
			fake_card = (struct fake_card){.failing = failing};
			assert_null(backend->create());
			check_ended();
		}
	}
}

static struct accelerator_job job_of(const char *text, char *output, uint32_t room)
{
	return (struct accelerator_job){
		.input = (const uint8_t *)text,
		.length = (uint32_t)strlen(text),
		.output = (uint8_t *)output,
		.room = room,
		.status = 1,
	};
}

/* Jobs are returned in the order of submission, though the card completes the last one first. */
TEST(jobs_keep_their_order)
{
	struct accelerator_job jobs[3], *back[3];
	char outputs[3][32];

	start("doca-compress");
	for (int i = 0; i < 3; i++) {
		jobs[i] = job_of("eight by", outputs[i], sizeof(outputs[i]));
		assert_int_equal(backend->submit(engine, &jobs[i]), BACKEND_TAKEN);
	}
	assert_int_equal(backend->poll(engine, back, 2), 2);
	assert_int_equal(backend->poll(engine, back + 2, 1), 1);
	assert_int_equal(backend->poll(engine, back, 0), 0);
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(back[i], &jobs[i]);
		assert_int_equal(jobs[i].status, 0);
		assert_int_equal(jobs[i].produced, 9);
		assert_string_equal(outputs[i], "eight by");
	}
	end();
}

/* A full card accepts more jobs after a poll, and each job once. */
TEST(full_card_accepts_jobs_after_a_poll)
{
	struct accelerator_job jobs[FAKE_CARD_DEPTH + 1], *back[FAKE_CARD_DEPTH];
	char output[32];

	start("doca-compress");
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i <= FAKE_CARD_DEPTH; i++) {
			jobs[i] = job_of("text", output, sizeof(output));
			assert_int_equal(backend->submit(engine, &jobs[i]),
					 i < FAKE_CARD_DEPTH ? BACKEND_TAKEN : BACKEND_FULL);
		}
		assert_int_equal(backend->poll(engine, back, FAKE_CARD_DEPTH), FAKE_CARD_DEPTH);
		assert_ptr_equal(back[FAKE_CARD_DEPTH - 1], &jobs[FAKE_CARD_DEPTH - 1]);
	}
	end();
}

/* Jobs that are too long, or that the card rejects, fail at once. */
TEST(bad_jobs_fail_at_once)
{
	static char long_text[4096];
	struct accelerator_job job;

	memset(long_text, 'a', sizeof(long_text) - 1);
	for (size_t i = 0; i < RTE_DIM(names); i++) {
		start(names[i]);
		job = job_of(long_text, NULL, 0);
		assert_int_equal(backend->submit(engine, &job), BACKEND_DONE);
		assert_int_equal(job.status, -EMSGSIZE);
		fake_card.rejection = DOCA_ERROR_NOT_SUPPORTED;
		job = job_of("text", NULL, 0);
		assert_int_equal(backend->submit(engine, &job), BACKEND_DONE);
		assert_int_equal(job.status, -EIO);
		assert_int_equal(backend->poll(engine, NULL, 0), 0);
		end();
	}
}

/* A job that fails on the card has a negative status. */
TEST(failed_jobs_have_a_negative_status)
{
	struct accelerator_job job, *back = NULL;
	char output[32];

	start("doca-compress");
	fake_card.breaking = true;
	job = job_of("text", output, sizeof(output));
	assert_int_equal(backend->submit(engine, &job), BACKEND_TAKEN);
	assert_int_equal(backend->poll(engine, &back, 1), 1);
	assert_ptr_equal(back, &job);
	assert_int_equal(job.status, -EIO);
	end();
}

/* Output larger than its buffer fails with -ENOSPC, also for a job of the largest length. */
TEST(too_large_output_fails)
{
	static char text[2049], output[2048];
	struct accelerator_job job, *back;

	memset(text, 'a', sizeof(text) - 1);
	start("doca-compress");
	job = job_of(text, output, sizeof(output));
	assert_int_equal(backend->submit(engine, &job), BACKEND_TAKEN);
	assert_int_equal(backend->poll(engine, &back, 1), 1);
	assert_int_equal(job.status, -ENOSPC);
	end();
}

/* Each rule counts once, the lowest is reported, and all matches return to their pool. */
TEST(each_rule_counts_once)
{
	struct accelerator_job job = job_of("\7\3\7\3\3", NULL, 0), *back;

	start("doca-regex");
	assert_int_equal(backend->submit(engine, &job), BACKEND_TAKEN);
	assert_int_equal(backend->poll(engine, &back, 1), 1);
	assert_int_equal(job.status, 0);
	assert_int_equal(job.produced, 2);
	assert_int_equal(job.rule, 2);
	end();
}

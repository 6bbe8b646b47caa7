#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "testbed/lines.h"
#include "testbed/serve.h"
#include "tests/support.h"

static volatile bool stop;

/* Serve some bytes with a testbed without workers; returns its responses as an array. */
static json_t *responses_of(struct testbed *testbed, const char *bytes, size_t n)
{
	json_t *responses = json_array(), *one;
	FILE *in = tmpfile(), *out = tmpfile();

	assert_non_null(in);
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, n, in), n);
	rewind(in);
	testbed->stop = &stop;
	testbed->machine.n_cores = 2;
	assert_int_equal(serve(testbed, fileno(in), out), 0);
	rewind(out);
	while ((one = json_loadf(out, JSON_DISABLE_EOF_CHECK, NULL)) != NULL)
		json_array_append_new(responses, one);
	fclose(in);
	fclose(out);
	return responses;
}

static json_t *responses_to(const char *bytes, size_t n)
{
	struct testbed *testbed = calloc(1, sizeof(*testbed));
	json_t *responses;

	assert_non_null(testbed);
	responses = responses_of(testbed, bytes, n);
	free(testbed);
	return responses;
}

static const char *code_of(const json_t *responses, size_t i)
{
	return json_string_value(
		json_object_get(json_object_get(json_array_get(responses, i), "error"), "code"));
}

static json_int_t id_of(const json_t *responses, size_t i)
{
	return json_integer_value(json_object_get(json_array_get(responses, i), "id"));
}

#define DESCRIBE "{\"id\": 7, \"op\": \"describe\"}\n"

/* A line with any bytes gets a response, and the next line is served. */
TEST(every_line_gets_a_response)
{
	static const char lines[] = "\0{\"id\": 1}\n"
				    "{\"id\": 1}\0\n"
				    "\xff\n"
				    "[\"\xc3\n" DESCRIBE " \t\r\n\n" DESCRIBE;
	json_t *responses = responses_to(lines, sizeof(lines) - 1);

	assert_int_equal(json_array_size(responses), 6);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(code_of(responses, i), "bad-request");
	assert_int_equal(id_of(responses, 4), 7);
	assert_int_equal(id_of(responses, 5), 7);
	json_decref(responses);
}

/* The last line needs no newline. */
TEST(last_line_needs_no_newline)
{
	json_t *responses = responses_to(DESCRIBE, strlen(DESCRIBE) - 1);

	assert_int_equal(json_array_size(responses), 1);
	json_decref(responses);
}

/* A truncated message does not end within a UTF-8 character. */
TEST(messages_end_at_whole_characters)
{
	for (int shift = 0; shift < 4; shift++) {
		char request[8192] =
			"{\"id\": 3, \"op\": \"run\", \"workloads\": [{\"kind\": \"nf\", "
			"\"name\": \"";
		json_t *responses;

		strcat(request, &"..."[3 - shift]);
		for (int i = 0; i < 600; i++)
			strcat(request, i % 2 ? "\xc3\xa9" : "\xf0\x9f\x98\x80");
		strcat(request, "\"}]}\n" DESCRIBE);
		responses = responses_to(request, strlen(request));
		assert_int_equal(json_array_size(responses), 2);
		assert_string_equal(code_of(responses, 0), "bad-request");
		assert_int_equal(id_of(responses, 0), 3);
		json_decref(responses);
	}
}

/* Workloads and benches that describe does not offer are rejected, and so are too many. */
TEST(rejects_what_describe_omits)
{
	struct testbed *testbed = calloc(1, sizeof(*testbed));
	char request[4096] = "{\"id\": 1, \"op\": \"run\", \"workloads\": [";
	json_t *responses;
	const char *message;

	assert_non_null(testbed);
	testbed->options.share_client_core = true;
	testbed->engines.clients_share_a_core = true;
	for (int i = 0; i < MOST_SHARING + 1; i++) {
		strcat(request, i > 0 ? "," : "");
		strcat(request, "{\"kind\": \"bench\", \"name\": \"mem-bench\", \"parameters\": "
				"{\"wss_mb\": 1, \"access_mops\": 1}}");
	}
	strcat(request, "]}\n");
	responses = responses_of(testbed, request, strlen(request));
	message = json_string_value(
		json_object_get(json_object_get(json_array_get(responses, 0), "error"), "message"));
	assert_string_equal(code_of(responses, 0), "bad-request");
	assert_non_null(strstr(message, "mem-bench: it uses no accelerator"));
	assert_non_null(strstr(message, "9 workloads cannot share a core; at most 8"));
	free(testbed);
	json_decref(responses);
}

/* A request may ask for a best effort by true or false, and by nothing else. */
TEST(best_effort_is_true_or_false)
{
	static const char *const values[] = {"1", "\"yes\"", "null", "true", "false"};

	for (size_t i = 0; i < RTE_DIM(values); i++) {
		const bool valid = i >= 3;
		char request[256];
		json_t *responses;
		const char *message;

		snprintf(request, sizeof(request),
			 "{\"id\": 1, \"op\": \"run\", \"best_effort\": %s, \"workloads\": []}\n",
			 values[i]);
		responses = responses_to(request, strlen(request));
		message = json_string_value(json_object_get(
			json_object_get(json_array_get(responses, 0), "error"), "message"));
		assert_string_equal(code_of(responses, 0), "bad-request");
		assert_int_equal(strstr(message, "best_effort is not true or false") == NULL,
				 valid);
		json_decref(responses);
	}
}

/* A line that is too long is rejected, and the next one is served. */
TEST(long_lines_are_rejected)
{
	const size_t n = 3 * LONGEST_LINE;
	char *text = malloc(n + sizeof(DESCRIBE));
	json_t *responses;

	assert_non_null(text);
	memset(text, ' ', n);
	memcpy(text + n, "\n" DESCRIBE, sizeof(DESCRIBE));
	responses = responses_to(text, n + sizeof(DESCRIBE));
	assert_int_equal(json_array_size(responses), 2);
	assert_string_equal(code_of(responses, 0), "bad-request");
	assert_int_equal(id_of(responses, 1), 7);
	json_decref(responses);
	free(text);
}

/* If a response cannot be written, serving ends. */
TEST(ends_when_a_response_cannot_be_written)
{
	struct testbed *testbed = calloc(1, sizeof(*testbed));
	FILE *in = tmpfile(), *out = fopen("/dev/full", "w");

	assert_non_null(testbed);
	assert_non_null(in);
	assert_non_null(out);
	testbed->stop = &stop;
	fputs(DESCRIBE DESCRIBE, in);
	rewind(in);
	assert_true(serve(testbed, fileno(in), out) < 0);
	fclose(in);
	fclose(out);
	free(testbed);
}

static void *stop_later(void *none)
{
	usleep(50000);
	stop = true;
	return none;
}

/* A stop ends the wait for a line, even without a signal. */
TEST(a_stop_ends_the_wait)
{
	struct testbed *testbed = calloc(1, sizeof(*testbed));
	pthread_t later;
	int ends[2];

	assert_non_null(testbed);
	assert_int_equal(pipe(ends), 0);
	testbed->stop = &stop;
	assert_int_equal(pthread_create(&later, NULL, stop_later, NULL), 0);
	assert_int_equal(serve(testbed, ends[0], stderr), 0);
	pthread_join(later, NULL);
	stop = false;
	close(ends[0]);
	close(ends[1]);
	free(testbed);
}

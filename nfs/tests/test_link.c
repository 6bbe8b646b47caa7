#include <sys/wait.h>

#include "rack/link.h"
#include "rack/link_file.h"
#include "tests/files.h"

#define MANY 100000

static volatile sig_atomic_t stopped;

static int start(void **state)
{
	stopped = 0;
	return enter_folder(state);
}

#define LINK_TEST(test) TEST_WITH(test, void *no_fixture, start, leave_folder)

static struct links *opened(const char *path, enum link_side side)
{
	struct links *links = links_create(&stopped);

	assert_non_null(links);
	assert_int_equal(links_open(links, path, side), 0);
	return links;
}

/* A packet of `n` bytes that says its number in each of them. */
static bool send_number(struct links *links, int link, uint64_t number, uint32_t n)
{
	uint8_t bytes[LINK_MOST_BYTES];

	memset(bytes, (int)(number & 0xff), sizeof(bytes));
	memcpy(bytes, &number, sizeof(number));
	return links_send(links, link,
			  &(struct link_message){.kind = LINK_PACKET,
						 .length = n,
						 .port = (uint16_t)number,
						 .time_us = number + 7,
						 .bytes = bytes});
}

static uint32_t length_of(uint64_t number)
{
	return (uint32_t)(8 + number * 31 % (LINK_MOST_BYTES - 8));
}

static bool is_number(const struct link_message *message, uint64_t number)
{
	uint64_t found;

	if (message->kind != LINK_PACKET || message->length != length_of(number))
		return false;
	memcpy(&found, message->bytes, sizeof(found));
	return found == number && message->time_us == number + 7 &&
	       message->port == (uint16_t)number &&
	       (message->length == 8 ||
		message->bytes[message->length - 1] == (uint8_t)(number & 0xff));
}

/* The next message, which must come. */
static bool receive(struct links *links, int link, struct link_message *message)
{
	while (!links_receive(links, link, message))
		if (!links_idle(links))
			return false;
	return true;
}

/* Send back all packets until the end; `slow` sleeps now and then. */
static int echo(const char *path, bool slow)
{
	struct links *links = opened(path, LINK_B);
	struct link_message message;

	for (uint64_t n = 0; receive(links, 0, &message) && message.kind != LINK_END; n++) {
		if (slow && n % 500 == 0)
			usleep(2000);
		if (!links_send(links, 0, &message))
			return 1;
	}
	if (!links_send_end(links, 0))
		return 1;
	links_destroy(links);
	return 0;
}

static void child_succeeds(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The sender sends all before it receives anything: it must not wait for its own echo. */
static void check_echo(unsigned int n, bool slow)
{
	struct link_message message;
	struct links *links;
	pid_t child = fork();

	if (child == 0)
		_exit(echo("file", slow));
	links = opened("file", LINK_A);
	for (uint64_t i = 0; i < n; i++)
		assert_true(send_number(links, 0, i, length_of(i)));
	assert_true(links_send_end(links, 0));
	for (uint64_t i = 0; i < n; i++) {
		assert_true(receive(links, 0, &message));
		if (!is_number(&message, i))
			fail_msg("packet %lu changed, or is out of order", (unsigned long)i);
	}
	assert_true(receive(links, 0, &message));
	assert_int_equal(message.kind, LINK_END);
	assert_int_equal(links_sent(links, 0), n);
	assert_int_equal(links_received(links, 0), n);
	child_succeeds(child);
	links_destroy(links);
}

/* 100,000 packets there and back: none is lost, changed or out of order. */
LINK_TEST(nothing_is_lost)
{
	check_echo(MANY, false);
}

LINK_TEST(nothing_is_lost_to_a_slow_reader)
{
	check_echo(10000, true);
}

/* Flush and end arrive behind the packets, and are not counted as such. */
LINK_TEST(messages_keep_their_order)
{
	struct links *a, *b;
	struct link_message message;

	a = opened("file", LINK_A);
	b = opened("file", LINK_B);
	assert_true(send_number(a, 0, 0, length_of(0)));
	assert_true(links_send_flush(a, 0, 17));
	assert_true(links_send_end(a, 0));
	assert_true(links_receive(b, 0, &message));
	assert_true(is_number(&message, 0));
	assert_true(links_receive(b, 0, &message));
	assert_int_equal(message.kind, LINK_FLUSH);
	assert_int_equal(link_round(&message), 17);
	assert_true(links_receive(b, 0, &message));
	assert_int_equal(message.kind, LINK_END);
	assert_false(links_receive(b, 0, &message));
	assert_int_equal(links_received(b, 0), 1);
	links_destroy(a);
	assert_true(links_idle(b)); /* the end came: nothing is missed */
	links_destroy(b);
}

/* A triangle of processes that all send before they receive does not stand still. */
LINK_TEST(no_circle_waits)
{
	struct links *links = links_create(&stopped);
	struct link_message message;
	pid_t child = fork();

	if (child == 0) {
		struct links *far = links_create(&stopped);

		links_open(far, "file", LINK_B);
		links_open(far, "other", LINK_A);
		while (receive(far, 0, &message) && message.kind != LINK_END)
			if (!links_send(far, 1, &message))
				_exit(1);
		_exit(links_send_end(far, 1) ? 0 : 1);
	}
	assert_int_equal(links_open(links, "file", LINK_A), 0);
	assert_int_equal(links_open(links, "other", LINK_B), 1);
	for (uint64_t i = 0; i < 5 * LINK_SLOTS; i++)
		assert_true(send_number(links, 0, i, length_of(i)));
	assert_true(links_send_end(links, 0));
	for (uint64_t i = 0; i < 5 * LINK_SLOTS; i++) {
		assert_true(receive(links, 1, &message));
		assert_true(is_number(&message, i));
	}
	child_succeeds(child);
	links_destroy(links);
}

/* The process at the other end dies: who waits for its packets, or for room, does not hang. */
LINK_TEST(a_death_is_noticed)
{
	for (int waits_for_room = 0; waits_for_room < 2; waits_for_room++) {
		struct link_message message;
		struct links *links;
		bool sent = true;
		pid_t child = fork();

		if (child == 0) {
			opened("file", LINK_B);
			for (;;)
				pause();
		}
		links = opened("file", LINK_A);
		assert_true(links_meet(links));
		kill(child, SIGKILL);
		if (waits_for_room)
			for (int i = 0; sent && i <= LINK_SLOTS; i++)
				sent = send_number(links, 0, 1, 8);
		else
			sent = receive(links, 0, &message);
		assert_false(sent);
		waitpid(child, NULL, 0);
		links_destroy(links);
		unlink("file");
	}
}

/* What a process sent before it died is received first. */
LINK_TEST(last_packets_of_the_dead_arrive)
{
	struct link_message message;
	struct links *links;
	pid_t child = fork();

	if (child == 0) {
		links = opened("file", LINK_B);
		_exit(send_number(links, 0, 1, length_of(1)) ? 0 : 1);
	}
	child_succeeds(child);
	links = opened("file", LINK_A);
	assert_true(receive(links, 0, &message));
	assert_true(is_number(&message, 1));
	assert_false(receive(links, 0, &message));
	links_destroy(links);
}

/* Ctrl-C ends both kinds of waiting. */
LINK_TEST(stopping_ends_waiting)
{
	struct links *links = opened("file", LINK_A);

	for (int i = 0; i < LINK_SLOTS; i++)
		assert_true(send_number(links, 0, 1, 8));
	stopped = 1;
	assert_false(send_number(links, 0, 1, 8));
	assert_false(links_idle(links));
	assert_false(links_meet(links));
	links_destroy(links);
}

/* A side is open once; a file of an earlier pair serves the next one, empty. */
LINK_TEST(a_side_is_open_once)
{
	struct links *a = opened("file", LINK_A), *b = opened("file", LINK_B);
	struct links *third = links_create(&stopped);
	struct link_message message;

	assert_int_equal(links_open(third, "file", LINK_A), -1);
	links_destroy(third);
	assert_true(send_number(a, 0, 1, 8));
	links_destroy(a);
	third = links_create(&stopped);
	assert_int_equal(links_open(third, "file", LINK_A), -1);
	links_destroy(third);
	links_destroy(b);
	b = opened("file", LINK_B);
	a = opened("file", LINK_A);
	assert_false(links_receive(b, 0, &message));
	links_destroy(a);
	links_destroy(b);
	/* only one side of the earlier pair came, and died */
	unlink("file");
	links_destroy(opened("file", LINK_A));
	b = opened("file", LINK_B);
	for (int i = 0; i < 200; i++)
		assert_true(links_idle(b));
	a = opened("file", LINK_A);
	links_destroy(a);
	links_destroy(b);
}

LINK_TEST(other_files_are_refused)
{
	struct links *links = links_create(&stopped);

	write_file("file", "text");
	assert_int_equal(links_open(links, "file", LINK_A), -1);
	assert_false(link_file_make("file"));
	assert_int_equal(links_open(links, "none/x", LINK_A), -1);
	assert_true(link_file_make("other"));
	assert_int_equal(links_open(links, "other", LINK_A), 0);
	links_destroy(links);
}

/* A slot with a length beyond its bytes is not read. */
LINK_TEST(damaged_slots_are_refused)
{
	struct links *links = opened("file", LINK_A);
	struct link_message message;
	int descriptor;
	struct link_file *file = link_file_map("file", LINK_B, false, &descriptor);

	assert_non_null(file);
	file->rings[LINK_B].slots[0].length = LINK_MOST_BYTES + 1;
	atomic_store(&file->rings[LINK_B].tail, 1);
	assert_false(links_receive(links, 0, &message));
	assert_false(links_idle(links));
	assert_false(send_number(links, 0, 1, LINK_MOST_BYTES + 1));
	links_destroy(links);
	link_file_unmap(file, LINK_B, descriptor);
}

#include <errno.h>

#include "testbed/hardware_events.h"
#include "tests/support.h"

/*
 * An event that was on a counter for half of the time is scaled up to all of it, also if it had not
 * been on one at the first reading.
 */
TEST(multiplexed_counts_are_scaled_up)
{
	struct hardware_reading from[HARDWARE_EVENTS] = {0}, to[HARDWARE_EVENTS];
	double counts[HARDWARE_EVENTS];

	from[0] = (struct hardware_reading){.count = 100, .enabled = 10, .running = 10};
	for (int i = 0; i < HARDWARE_EVENTS; i++)
		to[i] = (struct hardware_reading){.count = 1100, .enabled = 1010, .running = 505};
	to[0] = (struct hardware_reading){.count = 1100, .enabled = 1010, .running = 1010};
	assert_int_equal(hardware_events_between(from, to, counts), 0);
	assert_float_equal(counts[0], 1000, 1e-9);
	assert_float_equal(counts[1], 2200, 1e-9);
}

/* An event that was never on a counter is an error, not a count of 0. */
TEST(uncounted_events_are_an_error)
{
	struct hardware_reading from[HARDWARE_EVENTS] = {0}, to[HARDWARE_EVENTS] = {0};
	double counts[HARDWARE_EVENTS];

	for (int i = 1; i < HARDWARE_EVENTS; i++)
		to[i] = (struct hardware_reading){.enabled = 10, .running = 10};
	assert_int_equal(hardware_events_between(from, to, counts), -EBUSY);
}

/* If the machine has hardware events, each is counted within the trial. */
TEST(trial_counts_each_event)
{
	assert_true(hardware_events_try() <= 0);
}

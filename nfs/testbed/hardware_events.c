#include "testbed/hardware_events.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "core/clock.h"

#define TRIAL_NS 50000000ull /* the kernel multiplexes events every few ms */

#define CACHE(cache, operation)                                                                    \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##operation << 8 |                   \
	 PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

const char *const hardware_event_names[HARDWARE_EVENTS] = {
	[HARDWARE_INSTRUCTIONS] = "instructions",
	[HARDWARE_L1_READ_MISSES] = "l1_read_misses",
	[HARDWARE_L1_WRITE_MISSES] = "l1_write_misses",
	[HARDWARE_LAST_READ_MISSES] = "last_read_misses",
	[HARDWARE_LAST_WRITE_MISSES] = "last_write_misses",
};

static const struct {
	uint32_t type;
	uint64_t config;
} event_config[HARDWARE_EVENTS] = {
	[HARDWARE_INSTRUCTIONS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	[HARDWARE_L1_READ_MISSES] = {PERF_TYPE_HW_CACHE, CACHE(L1D, READ)},
	[HARDWARE_L1_WRITE_MISSES] = {PERF_TYPE_HW_CACHE, CACHE(L1D, WRITE)},
	[HARDWARE_LAST_READ_MISSES] = {PERF_TYPE_HW_CACHE, CACHE(LL, READ)},
	[HARDWARE_LAST_WRITE_MISSES] = {PERF_TYPE_HW_CACHE, CACHE(LL, WRITE)},
};

static int open_event(enum hardware_event event)
{
	struct perf_event_attr attributes = {
		.type = event_config[event].type,
		.size = sizeof(attributes),
		.config = event_config[event].config,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	long file = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return file < 0 ? -errno : (int)file;
}

static void hardware_events_close(struct hardware_events *events)
{
	for (int i = 0; i < HARDWARE_EVENTS; i++)
		if (events->files[i] >= 0)
			close(events->files[i]);
}

int hardware_events_open(struct hardware_events *events)
{
	int result = 0;

	for (int i = 0; i < HARDWARE_EVENTS; i++)
		events->files[i] = -1;
	for (int i = 0; i < HARDWARE_EVENTS && result == 0; i++) {
		events->files[i] = open_event((enum hardware_event)i);
		if (events->files[i] < 0)
			result = events->files[i];
	}
	if (result < 0)
		hardware_events_close(events);
	return result;
}

int hardware_events_read(const struct hardware_events *events,
			 struct hardware_reading readings[HARDWARE_EVENTS])
{
	for (int i = 0; i < HARDWARE_EVENTS; i++)
		if (read(events->files[i], &readings[i], sizeof(readings[i])) !=
		    sizeof(readings[i]))
			return -EIO;
	return 0;
}

int hardware_events_between(const struct hardware_reading from[HARDWARE_EVENTS],
			    const struct hardware_reading to[HARDWARE_EVENTS],
			    double counts[HARDWARE_EVENTS])
{
	for (int i = 0; i < HARDWARE_EVENTS; i++) {
		const uint64_t running = to[i].running - from[i].running;

		if (running == 0)
			return -EBUSY;
		counts[i] = (double)(to[i].count - from[i].count) *
			    ((double)(to[i].enabled - from[i].enabled) / (double)running);
	}
	return 0;
}

int hardware_events_try(void)
{
	struct hardware_reading from[HARDWARE_EVENTS], to[HARDWARE_EVENTS];
	const uint64_t until = clock_ns() + TRIAL_NS;
	double counts[HARDWARE_EVENTS];
	struct hardware_events events;
	int result = hardware_events_open(&events);

	if (result < 0)
		return result;
	result = hardware_events_read(&events, from);
	while (clock_ns() < until)
		;
	if (result == 0)
		result = hardware_events_read(&events, to);
	if (result == 0)
		result = hardware_events_between(from, to, counts);
	hardware_events_close(&events);
	return result;
}

#include <string.h>

#include "testbed/eal.h"
#include "tests/support.h"

static const struct machine machine = {.n_cores = 2, .cores = {0, 3}};

static bool has(const struct eal_arguments *arguments, const char *word)
{
	for (int i = 0; i < arguments->n; i++)
		if (strcmp(arguments->words[i], word) == 0)
			return true;
	return false;
}

/* Without ports, EAL uses no PCI device. */
TEST(no_ports_mean_no_pci)
{
	static const char *const expected[] = {
		"testbed",     "--lcores",       "0@(0,3),1@0,2@3", "-m",
		"512",         "--no-pci",       "--no-shconf",     "--no-telemetry",
		"--log-level", "lib.eal:error",  "--no-huge",
	};
	const struct eal_config config = {.memory_mb = 512};
	struct eal_arguments arguments;

	eal_arguments(&arguments, &machine, &config, 511);
	assert_int_equal(arguments.n, RTE_DIM(expected));
	for (int i = 0; i < arguments.n; i++)
		assert_string_equal(arguments.words[i], expected[i]);
}

/* Each port is an allowed device, with its devargs; --no-pci would hide it. */
TEST(ports_are_allowed_devices)
{
	const struct eal_config config = {
		.memory_mb = 512,
		.ports = {2, {"0000:03:00.0,dv_flow_en=2", "03:00.1"}},
	};
	struct eal_arguments arguments;
	int i = 0;

	eal_arguments(&arguments, &machine, &config, 0);
	assert_false(has(&arguments, "--no-pci"));
	while (i < arguments.n && strcmp(arguments.words[i], "-a") != 0)
		i++;
	assert_true(i + 4 <= arguments.n);
	assert_string_equal(arguments.words[i + 1], "0000:03:00.0,dv_flow_en=2");
	assert_string_equal(arguments.words[i + 2], "-a");
	assert_string_equal(arguments.words[i + 3], "03:00.1");
}

/* Hugepages are used if enough are free, unless pages must be small. */
TEST(free_hugepages_are_used)
{
	struct eal_config config = {.memory_mb = 512};
	struct eal_arguments arguments;

	eal_arguments(&arguments, &machine, &config, 512);
	assert_true(has(&arguments, "--in-memory"));
	assert_false(has(&arguments, "--no-huge"));
	config.small_pages = true;
	eal_arguments(&arguments, &machine, &config, 512);
	assert_true(has(&arguments, "--no-huge"));
}

/* The largest machine with all options fits. */
TEST(the_largest_machine_fits)
{
	struct machine large = {.n_cores = MACHINE_MOST_CORES};
	const struct eal_config config = {
		.memory_mb = 1u << 20,
		.ports = {2, {"0000:03:00.0", "0000:03:00.1"}},
	};
	struct eal_arguments arguments;

	for (int i = 0; i < MACHINE_MOST_CORES; i++)
		large.cores[i] = 900 + i;
	eal_arguments(&arguments, &large, &config, 0);
	assert_in_range(arguments.n, 1, EAL_MOST_ARGUMENTS);
	assert_string_equal(arguments.lcores + strlen(arguments.lcores) - 7, ",64@963");
}

#include <string.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "testbed/ports.h"
#include "tests/support.h"

static bool add(struct ports *ports, const char *given, const char *expected)
{
	char why[256] = "";
	const bool added = ports_add(ports, given, why, sizeof(why));

	if (!strstr(why, expected))
		fail_msg("%s: %s", given, why);
	return added;
}

/* A port is a PCI address with or without domain, perhaps with devargs. */
TEST(accepts_pci_addresses)
{
	static const char *const valid[] = {"03:00.0", "0000:03:00.1", "0000:03:00.1,dv_flow_en=2",
					    "03:00.1,dv_flow_en=2,dv_xmeta_en=4"};

	for (size_t i = 0; i < RTE_DIM(valid); i++) {
		struct ports ports = {0};

		assert_true(add(&ports, valid[i], ""));
		assert_int_equal(ports.n, 1);
		assert_ptr_equal(ports.given[0], valid[i]);
	}
}

/* Anything else is refused, with the reason. */
TEST(refuses_what_is_no_address)
{
	static const char *const invalid[] = {
		"",        "eth0", "03:00",   "03:00.8", "03:00.0x",
		"03:20.0", "3",    "03:zz.0", ",",       "00000000000003:00.0",
		"-a",
	};
	static const char *const devargs[] = {"03:00.0,", "03:00.0,=2", "03:00.0,dv_flow_en",
					      "03:00.0,dv_flow_en="};
	struct ports ports = {0};

	for (size_t i = 0; i < RTE_DIM(invalid); i++)
		assert_false(add(&ports, invalid[i], "is not a PCI address"));
	for (size_t i = 0; i < RTE_DIM(devargs); i++)
		assert_false(add(&ports, devargs[i], "devargs are key=value"));
	assert_int_equal(ports.n, 0);
}

static bool complete(const struct ports *ports, const char *expected)
{
	char why[256] = "";
	const bool is_complete = ports_complete(ports, why, sizeof(why));

	assert_non_null(strstr(why, expected));
	return is_complete;
}

/* A card has two ports; DPDK gives the lower address, the inside port, number 0. */
TEST(a_card_has_an_inside_and_an_outside_port)
{
	struct ports ports = {0};

	assert_true(complete(&ports, ""));
	assert_true(add(&ports, "03:00.0", ""));
	assert_false(complete(&ports, "outside port is missing"));
	assert_true(add(&ports, "03:00.1,dv_flow_en=2", ""));
	assert_true(complete(&ports, ""));
	assert_false(add(&ports, "04:00.0", "one too many"));
	ports.given[1] = "0000:03:00.0";
	assert_false(complete(&ports, "must have a lower address"));
	ports.given[1] = "02:00.0";
	assert_false(complete(&ports, "must have a lower address"));
}

/* Ports that DPDK does not find are an error; those that it finds are started. */
TEST(found_ports_are_started)
{
	const struct ports none = {0}, ports = {2, {"03:00.0", "03:00.1"}};
	struct rte_eth_link link;

	assert_int_equal(ports_start(&none), 0);
	assert_true(ports_start(&ports) < 0);
	assert_int_equal(rte_eal_hotplug_add("vdev", "net_null0", ""), 0);
	assert_int_equal(rte_eal_hotplug_add("vdev", "net_null1", ""), 0);
	assert_int_equal(ports_start(&ports), 0);
	for (uint16_t port = 0; port < PORTS; port++) {
		assert_int_equal(rte_eth_link_get_nowait(port, &link), 0);
		assert_int_equal(link.link_status, RTE_ETH_LINK_UP);
	}
	ports_stop(&ports);
	assert_int_equal(rte_eth_link_get_nowait(0, &link), 0);
	assert_int_equal(link.link_status, RTE_ETH_LINK_DOWN);
}

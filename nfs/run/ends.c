#include "run/ends.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "core/traffic.h"

/* Ethernet ports of DPDK: network interfaces by AF_PACKET. */

#define DESCRIPTORS 256
#define MOST_PORTS 4

static struct {
	char interface[IF_NAMESIZE];
	unsigned int users;
	uint16_t port;
} ports[MOST_PORTS];

static void device_name(unsigned int at, char *name, size_t size)
{
	snprintf(name, size, "net_af_packet%u", at);
}

static int start(uint16_t port, struct rte_mempool *pool)
{
	const struct rte_eth_conf conf = {0};
	int result = rte_eth_dev_configure(port, 1, 1, &conf);

	if (result == 0)
		result = rte_eth_rx_queue_setup(port, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL, pool);
	if (result == 0)
		result = rte_eth_tx_queue_setup(port, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL);
	if (result == 0)
		result = rte_eth_dev_start(port);
	if (result == 0)
		result = rte_eth_promiscuous_enable(port);
	return result;
}

/* Start a port on a network interface; its number, or a negative errno after printing why. */
static int port_open(const char *interface, struct rte_mempool *pool)
{
	char name[32], arguments[64];
	unsigned int at = 0;
	int result;

	while (at < MOST_PORTS && ports[at].users && strcmp(ports[at].interface, interface) != 0)
		at++;
	if (at < MOST_PORTS && ports[at].users) {
		ports[at].users++;
		return ports[at].port;
	}
	if (at == MOST_PORTS || strlen(interface) >= IF_NAMESIZE ||
	    if_nametoindex(interface) == 0) {
		fprintf(stderr, "af_packet:%s: no such network interface\n", interface);
		return -ENODEV;
	}
	device_name(at, name, sizeof(name));
	snprintf(arguments, sizeof(arguments), "iface=%s", interface);
	result = rte_eal_hotplug_add("vdev", name, arguments);
	if (result == 0)
		result = rte_eth_dev_get_port_by_name(name, &ports[at].port);
	if (result == 0)
		result = start(ports[at].port, pool);
	if (result < 0) {
		fprintf(stderr, "af_packet:%s: %s\nhint: it needs the privilege CAP_NET_RAW\n",
			interface, strerror(-result));
		return result;
	}
	strcpy(ports[at].interface, interface);
	ports[at].users = 1;
	return ports[at].port;
}

static void port_close(int port)
{
	char name[32];

	for (unsigned int at = 0; at < MOST_PORTS; at++) {
		if (ports[at].users == 0 || ports[at].port != port || --ports[at].users > 0)
			continue;
		rte_eth_dev_stop(ports[at].port);
		rte_eth_dev_close(ports[at].port);
		device_name(at, name, sizeof(name));
		rte_eal_hotplug_remove("vdev", name);
	}
}

#define POOL_PACKETS 8191
#define INTERFACE "af_packet:"
#define RING "ring"

struct source {
	enum nf_side side;
	struct rte_mempool *pool;
	struct capture_reader *capture;
	struct traffic *traffic;
	int port; /* -1: none */
};

static bool is_interface(const char *text)
{
	return strncmp(text, INTERFACE, strlen(INTERFACE)) == 0;
}

static bool is_ring(const char *text)
{
	return strcmp(text, RING) == 0 || strncmp(text, RING ":", strlen(RING ":")) == 0;
}

static struct rte_mempool *make_pool(void)
{
	static unsigned int n_created;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool;

	snprintf(name, sizeof(name), "end_%u", n_created++);
	pool = rte_pktmbuf_pool_create(name, POOL_PACKETS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	if (!pool)
		fprintf(stderr, "nf-run: no memory for packets: %s\n", rte_strerror(rte_errno));
	return pool;
}

/* "ring:FLOWS,SIZE" */
static struct traffic *generated(const char *text)
{
	struct traffic_profile profile = {.flows = 1000, .packet_size = 64};
	unsigned int flows = profile.flows, size = profile.packet_size;
	char rest;

	if (text[strlen(RING)] == ':' &&
	    (sscanf(text + strlen(RING ":"), "%u,%u%c", &flows, &size, &rest) != 2 ||
	     size > UINT16_MAX)) {
		fprintf(stderr, "%s: a ring is written ring:FLOWS,SIZE\n", text);
		return NULL;
	}
	profile.flows = flows;
	profile.packet_size = (uint16_t)size;
	return traffic_create(&profile, 1);
}

struct source *source_open(const char *text, enum nf_side side, const char *reads)
{
	struct source *source = calloc(1, sizeof(*source));

	if (!source)
		return NULL;
	source->side = side;
	source->port = -1;
	source->pool = make_pool();
	if (!source->pool)
		goto failed;
	if (is_interface(text))
		source->port = port_open(text + strlen(INTERFACE), source->pool);
	else if (is_ring(text))
		source->traffic = generated(text);
	else
		source->capture = capture_reader_open(text, reads);
	if (source->port >= 0 || source->traffic || source->capture)
		return source;
failed:
	source_close(source);
	return NULL;
}

void source_close(struct source *source)
{
	if (!source)
		return;
	capture_reader_close(source->capture);
	traffic_destroy(source->traffic);
	if (source->port >= 0)
		port_close(source->port);
	rte_mempool_free(source->pool);
	free(source);
}

unsigned int source_in_use(const struct source *source)
{
	return source ? rte_mempool_in_use_count(source->pool) : 0;
}

bool source_is_recorded(const struct source *source)
{
	return source->capture != NULL;
}

struct capture_format source_format(const struct source *source)
{
	return capture_reader_format(source->capture);
}

uint64_t source_next_ns(struct source *source, bool *failed)
{
	uint64_t time_ns;

	switch (capture_reader_peek(source->capture, &time_ns)) {
	case CAPTURE_PACKET:
		return time_ns;
	case CAPTURE_FAULT:
		*failed = true;
		return UINT64_MAX;
	case CAPTURE_END:
		break;
	}
	return UINT64_MAX;
}

static uint16_t receive_recorded(struct source *source, struct rte_mbuf **packets, uint16_t n,
				 uint64_t *time_ns, bool *ended, bool *failed)
{
	uint16_t received = 0;

	*time_ns = source_next_ns(source, failed);
	*ended = *time_ns == UINT64_MAX;
	while (!*ended && received < n && source_next_ns(source, failed) == *time_ns) {
		packets[received] = capture_reader_take(source->capture, source->pool);
		if (!packets[received])
			break; /* functions hold many packets: later */
		received++;
	}
	return received;
}

uint16_t source_receive(struct source *source, struct rte_mbuf **packets, uint16_t n,
			uint64_t *time_ns, bool *ended, bool *failed)
{
	uint16_t received;

	*ended = false;
	if (source->capture)
		received = receive_recorded(source, packets, n, time_ns, ended, failed);
	else if (source->traffic)
		received = traffic_receive(source->traffic, packets, n);
	else
		received = rte_eth_rx_burst((uint16_t)source->port, 0, packets, n);
	for (uint16_t i = 0; i < received; i++)
		metadata_begin(packets[i], source->side, 0);
	return received;
}

struct sink {
	struct capture_writer *capture;
	int port; /* -1: none */
	struct rte_mempool *pool;
};

struct sink *sink_open(const char *text, const struct capture_format *format)
{
	struct sink *sink = calloc(1, sizeof(*sink));
	bool open = true;

	if (!sink)
		return NULL;
	sink->port = -1;
	if (text && is_interface(text)) {
		sink->pool = make_pool();
		if (sink->pool)
			sink->port = port_open(text + strlen(INTERFACE), sink->pool);
		open = sink->port >= 0;
	} else if (text && !is_ring(text)) {
		sink->capture = capture_writer_open(text, format);
		open = sink->capture != NULL;
	}
	if (open)
		return sink;
	rte_mempool_free(sink->pool);
	free(sink);
	return NULL;
}

static void transmit(int port, struct rte_mbuf **packets, uint16_t n)
{
	uint16_t sent = rte_eth_tx_burst((uint16_t)port, 0, packets, n);

	rte_pktmbuf_free_bulk(packets + sent, n - sent);
}

bool sink_send(struct sink *sink, struct rte_mbuf **packets, uint16_t n, uint64_t time_ns,
	       bool recorded)
{
	bool written = true;

	if (sink->port >= 0) {
		transmit(sink->port, packets, n);
		return true;
	}
	for (uint16_t i = 0; sink->capture && i < n && written; i++)
		written = capture_writer_write(
			sink->capture, packets[i], time_ns,
			recorded ? metadata_of(packets[i])->begun : 0);
	rte_pktmbuf_free_bulk(packets, n);
	return written;
}

bool sink_close(struct sink *sink, bool keep)
{
	bool written;

	if (!sink)
		return true;
	written = capture_writer_close(sink->capture, keep);
	if (sink->port >= 0)
		port_close(sink->port);
	rte_mempool_free(sink->pool);
	free(sink);
	return written;
}

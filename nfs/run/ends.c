#include "run/ends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>

#include "core/traffic.h"
#include "run/captures.h"
#include "run/ports.h"

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

struct source *source_open(const char *text, enum nf_side side)
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
		source->capture = capture_reader_open(text);
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

uint64_t source_next_us(struct source *source, bool *failed)
{
	uint64_t time_us;

	switch (capture_reader_peek(source->capture, &time_us)) {
	case CAPTURE_PACKET:
		return time_us;
	case CAPTURE_FAULT:
		*failed = true;
		return UINT64_MAX;
	case CAPTURE_END:
		break;
	}
	return UINT64_MAX;
}

static uint16_t receive_recorded(struct source *source, struct rte_mbuf **packets, uint16_t n,
				 uint64_t *time_us, bool *ended, bool *failed)
{
	uint16_t received = 0;

	*time_us = source_next_us(source, failed);
	*ended = *time_us == UINT64_MAX;
	while (!*ended && received < n && source_next_us(source, failed) == *time_us) {
		packets[received] = capture_reader_take(source->capture, source->pool);
		if (!packets[received])
			break; /* functions hold many packets: later */
		received++;
	}
	return received;
}

uint16_t source_receive(struct source *source, struct rte_mbuf **packets, uint16_t n,
			uint64_t *time_us, bool *ended, bool *failed)
{
	uint16_t received;

	*ended = false;
	if (source->capture)
		received = receive_recorded(source, packets, n, time_us, ended, failed);
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

struct sink *sink_open(const char *text)
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
		sink->capture = capture_writer_open(text);
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

bool sink_send(struct sink *sink, struct rte_mbuf **packets, uint16_t n, uint64_t time_us)
{
	bool written = true;

	if (sink->port >= 0) {
		transmit(sink->port, packets, n);
		return true;
	}
	for (uint16_t i = 0; sink->capture && i < n && written; i++)
		written = capture_writer_write(sink->capture, packets[i], time_us);
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

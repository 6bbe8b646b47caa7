/* A link of two functions that encrypt and decrypt, and checks of any such link. */
#pragma once

#include "functions/esp/gateway.h"
#include "tests/hostile.h"

#define ESP_RIG_SETTINGS 8

/* The near end is the rig's function. */
struct esp_link {
	struct rig *rig;
	struct nf *far;
	struct nf_out out; /* what the far end sent */
};

/*
 * Both ends with the same settings, the far one of FastEncrypt with `decrypt` besides, that of IPSec
 * with `reversed`; freed with the rig, or by its next link.
 */
struct esp_link *esp_link_make(struct rig *rig, const char *near, const char *far,
			       const struct nf_setting *settings, unsigned int n_settings);

/* A packet of 1,000 bytes of payload from inside. */
struct rte_mbuf *esp_some_packet(struct rig *rig);

/* A packet encrypted by the near end; the caller frees it. */
struct rte_mbuf *esp_sealed(struct rig *rig, struct rte_mbuf *packet);

/* Offer a packet to the far end; returns whether it was sent, to `link->out`. */
bool esp_far_passes(struct esp_link *link, struct rte_mbuf *packet);

/* Packets of all protocols and lengths come back with the same bytes, in both directions. */
void esp_check_round_trips(struct esp_link *link);

/* An ESP packet with any byte changed, or shortened, is never sent. */
void esp_check_changes_are_noticed(struct esp_link *link);

/* Both ends survive hostile packets, and those made from valid ESP packets. */
void esp_check_hostile(struct esp_link *link);

/* Replays are freed with a window and pass without one. */
void esp_check_replays(struct rig *rig, const char *near, const char *far);

/* What the rig's function receives stays unchanged: traffic sends the same payloads again. */
void esp_check_unchanged(struct rig *rig);

/* Each of these settings is refused. */
void esp_check_refused(struct rig *rig, const char *name, const struct nf_setting *wrong,
		       unsigned int n);

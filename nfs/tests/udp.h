/* A packet of UDP from an inside host to a server, which tests vary. */
#pragma once

#include "tests/support.h"

static const struct packet_spec udp = {.source = RTE_IPV4(10, 0, 0, 1),
				       .destination = RTE_IPV4(198, 51, 100, 7),
				       .source_port = 1000,
				       .destination_port = 53,
				       .payload = "question",
				       .payload_length = 8};

/* The lookup table in software, which backends with a card need, too. */
#pragma once

#include "functions/flow_offload/offload.h"

void *software_create(uint32_t connections, int socket);
uint32_t software_places(const void *state);
void software_lookup(void *state, const struct flow_key *keys, uint16_t n, int32_t *places);
int32_t software_insert(void *state, const struct flow_key *key);
/* The key at a used index. */
struct flow_key software_key(const void *state, uint32_t place);
void software_remove(void *state, uint32_t place);
void software_destroy(void *state);

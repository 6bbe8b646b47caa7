/*
 * Decrypt: the other end of Encrypt's link. Packets from inside are decrypted, those from outside
 * leave as ESP by AES-128-CBC (RFC 3602) and HMAC-SHA-256-128 (RFC 4868).
 */
#include "functions/esp/aes.h"
#include "functions/esp/gateway.h"

static const struct nf_parameter parameters[] = {ESP_AES_PARAMETERS};
static const struct nf_counter counters[] = {ESP_DECLARE_COUNTERS};

static int create(struct nf *nf)
{
	return esp_aes_create(nf, true);
}

NF_KIND("Decrypt", "decrypts what goes outside (ESP, AES-128-CBC), encrypts what comes back",
	.alters = true, .create = create, .process = esp_process, .destroy = esp_destroy)

/*
 * Encrypt: packets from inside leave as ESP by AES-128-CBC (RFC 3602) and HMAC-SHA-256-128 (RFC
 * 4868); those from outside are decrypted. The other end of the link is Decrypt.
 */
#include "functions/esp/aes.h"
#include "functions/esp/gateway.h"

static const struct nf_parameter parameters[] = {ESP_AES_PARAMETERS};
static const struct nf_counter counters[] = {ESP_DECLARE_COUNTERS};

static int create(struct nf *nf)
{
	return esp_aes_create(nf, false);
}

NF_KIND("Encrypt", "encrypts what goes outside (ESP, AES-128-CBC), decrypts what comes back",
	.alters = true, .create = create, .process = esp_process, .destroy = esp_destroy)

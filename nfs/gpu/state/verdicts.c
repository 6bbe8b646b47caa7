/*
 * Verdicts of kernels by the names of the counters of the functions in C. Those that leave a frame to
 * the host, such as ACL_OTHER, have none.
 */
#include "gpu/kernels/acl.h"
#include "gpu/kernels/ip_router.h"
#include "gpu/kernels/ipsec.h"
#include "gpu/kernels/nids.h"
#include "gpu/state/state.h"

#define MOST_VERDICTS 13

static const char *const names[GPU_NFS][MOST_VERDICTS] = {
	[GPU_IP_ROUTER] = {[ROUTER_FORWARDED] = "forwarded",
			   [ROUTER_EXPIRED] = "expired",
			   [ROUTER_UNROUTABLE] = "unroutable",
			   [ROUTER_MARTIAN] = "martian",
			   [ROUTER_MULTICAST] = "multicast",
			   [ROUTER_LOCAL] = "local",
			   [ROUTER_BAD_CHECKSUM] = "bad_checksum",
			   [ROUTER_MALFORMED] = "malformed"},
	[GPU_ACL] = {[ACL_PERMITTED] = "permitted",
		     [ACL_DENIED] = "denied",
		     [ACL_MALFORMED] = "malformed"},
	[GPU_NIDS] = {[NIDS_SCANNED] = "scanned",
		      [NIDS_FRAGMENTS] = "fragments",
		      [NIDS_DROPPED] = "dropped",
		      [NIDS_MALFORMED] = "malformed"},
	[GPU_IPSEC] = {[IPSEC_ENCRYPTED] = "encrypted",
		       [IPSEC_DECRYPTED] = "decrypted",
		       [IPSEC_UNAUTHENTIC] = "unauthentic",
		       [IPSEC_GARBLED] = "garbled",
		       [IPSEC_FOREIGN] = "foreign",
		       [IPSEC_DUMMIES] = "dummies",
		       [IPSEC_CONGESTED] = "congested",
		       [IPSEC_FRAGMENTS] = "fragments",
		       [IPSEC_EXHAUSTED] = "exhausted",
		       [IPSEC_TOO_LONG] = "too_long",
		       [IPSEC_MALFORMED] = "malformed"},
};

const char *gpu_verdict_name(enum gpu_nf nf, u32 verdict)
{
	const u32 which = verdict & ~GPU_FREED;

	return nf < GPU_NFS && which < MOST_VERDICTS ? names[nf][which] : NULL;
}

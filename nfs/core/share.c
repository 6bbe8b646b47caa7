#include "core/share.h"

#include <ctype.h>
#include <stddef.h>

/* Room for a sum of shares times a range of 2^16 is left in 128 bits. */
#define MOST_DENOMINATOR ((wide)1 << 100)

__extension__ typedef unsigned __int128 wide;

/* Read digits onto `*number`; NULL if there are none, or too many. */
static const char *read_digits(const char *text, uint64_t *number)
{
	const char *begin = text;

	for (; isdigit((unsigned char)*text); text++) {
		*number = *number * 10 + (uint64_t)(*text - '0');
		if (*number > SHARE_MOST)
			return NULL;
	}
	return text > begin ? text : NULL;
}

bool share_read(const char *text, struct share *share)
{
	const char *digits;

	*share = (struct share){0, 1};
	if (*text == '.')
		digits = text;
	else
		digits = read_digits(text, &share->part);
	if (digits && *digits == '/') {
		share->of = 0;
		digits = read_digits(digits + 1, &share->of);
	} else if (digits && *digits == '.') {
		const char *begin = ++digits;

		digits = read_digits(digits, &share->part);
		for (ptrdiff_t n = digits ? digits - begin : 0; n > 0; n--) {
			if (share->of == SHARE_MOST)
				return false;
			share->of *= 10;
		}
	}
	return digits && *digits == '\0' && share->part > 0 && share->part <= share->of;
}

static wide greatest_common_divisor(wide a, wide b)
{
	while (b > 0) {
		const wide rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

bool share_limits(const struct share *shares, unsigned int n, uint32_t range, uint32_t *limits)
{
	wide denominator = 1, sum = 0, before = 0;

	for (unsigned int i = 0; i < n; i++) {
		const wide factor =
			shares[i].of / greatest_common_divisor(denominator, shares[i].of);

		if (denominator > MOST_DENOMINATOR / factor)
			return false;
		denominator *= factor;
	}
	for (unsigned int i = 0; i < n; i++)
		sum += shares[i].part * (denominator / shares[i].of);
	for (unsigned int i = 0; i < n; i++) {
		before += shares[i].part * (denominator / shares[i].of);
		limits[i] = (uint32_t)(range * before / sum);
	}
	return true;
}

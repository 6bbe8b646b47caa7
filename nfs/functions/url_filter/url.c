#include "functions/url_filter/url.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

size_t url_host(const char *authority, size_t length, char host[URL_LONGEST_HOST])
{
	const char *user_end = memrchr(authority, '@', length);
	const char *begin = user_end ? user_end + 1 : authority;
	size_t n = (size_t)(authority + length - begin);
	size_t digits = 0;

	while (digits < n && isdigit((unsigned char)begin[n - 1 - digits]))
		digits++;
	if (digits < n && begin[n - 1 - digits] == ':')
		n -= digits + 1;
	if (n > 0 && begin[n - 1] == '.')
		n--;
	if (n > URL_LONGEST_HOST)
		return 0;
	for (size_t i = 0; i < n; i++)
		host[i] = (char)tolower((unsigned char)begin[i]);
	return n;
}

static int value_of(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	digit |= 0x20;
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static bool is_unreserved(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_' || c == '~';
}

/*
 * Append the character at `at` to `to`: an encoded unreserved one is decoded, other encoded ones
 * get upper case. Returns how many bytes were read; those written are not more.
 */
static size_t append(const char *text, size_t at, size_t length, char *to, size_t *n)
{
	int high, low;

	if (text[at] != '%' || length - at < 3 || (high = value_of(text[at + 1])) < 0 ||
	    (low = value_of(text[at + 2])) < 0) {
		to[(*n)++] = text[at];
		return 1;
	}
	if (high < 8 && is_unreserved((char)(high << 4 | low))) {
		to[(*n)++] = (char)(high << 4 | low);
		return 3;
	}
	to[(*n)++] = '%';
	to[(*n)++] = "0123456789ABCDEF"[high];
	to[(*n)++] = "0123456789ABCDEF"[low];
	return 3;
}

/* Resolve the last segment, which begins behind the slash at `begin`; returns the new length. */
static size_t resolved(const char *path, size_t begin, size_t length)
{
	const size_t segment = length - begin - 1;

	if (segment == 0 || (segment == 1 && path[begin + 1] == '.'))
		return begin;
	if (segment != 2 || memcmp(path + begin + 1, "..", 2) != 0)
		return length;
	while (begin > 0 && path[begin - 1] != '/')
		begin--;
	return begin > 0 ? begin - 1 : 0;
}

bool url_path(const char *target, size_t length, char path[URL_LONGEST_PATH], size_t *path_length)
{
	const char *query = memchr(target, '?', length);
	size_t n = 0, begin = 0;

	if (query)
		length = (size_t)(query - target);
	*path_length = 0;
	if (length > URL_LONGEST_PATH)
		return false;
	if (length == 0 || target[0] != '/')
		return true;
	for (size_t at = 0; at < length;) {
		if (target[at] == '/') {
			n = n > 0 ? resolved(path, begin, n) : 0;
			begin = n;
		}
		at += append(target, at, length, path, &n);
	}
	*path_length = resolved(path, begin, n);
	return true;
}

size_t url_authority(const char *url, size_t length)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (int i = 0; i < 2; i++) {
		const size_t n = strlen(schemes[i]);

		if (length >= n && strncasecmp(url, schemes[i], n) == 0)
			return n;
	}
	return 0;
}

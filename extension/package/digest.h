/*-------------------------------------------------------------------------
 *
 * digest.h
 *	  SHA-256 and HMAC-SHA-256; the only user of OpenSSL in the tree.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_DIGEST_H
#define EV_PACKAGE_DIGEST_H

#include <stddef.h>

#include "error.h"

#define EV_SHA256_BYTES 32
#define EV_SHA256_HEX 65		/* 64 digits and the terminating zero */

typedef struct EvSha256 EvSha256;

/* A running SHA-256; NULL with *error filled on failure. */
extern EvSha256 *ev_sha256_create(EvError *error);
extern bool ev_sha256_update(EvSha256 *hash, const void *data, size_t length,
							 EvError *error);

/* The digest of all that was fed; the state may only be freed afterwards. */
extern bool ev_sha256_finish(EvSha256 *hash,
							 unsigned char digest[EV_SHA256_BYTES],
							 EvError *error);
extern void ev_sha256_free(EvSha256 *hash); /* NULL is allowed */

/* One-shot forms. */
extern bool ev_sha256(const void *data, size_t length,
					  unsigned char digest[EV_SHA256_BYTES], EvError *error);
extern bool ev_hmac_sha256(const void *key, size_t key_length,
						   const void *data, size_t length,
						   unsigned char digest[EV_SHA256_BYTES],
						   EvError *error);

/* Lower-case hex of a digest. */
extern void ev_sha256_hex(const unsigned char digest[EV_SHA256_BYTES],
						  char hex[EV_SHA256_HEX]);

/* Compare two byte strings of equal length in constant time. */
extern bool ev_digest_equal(const void *a, const void *b, size_t length);

#endif							/* EV_PACKAGE_DIGEST_H */

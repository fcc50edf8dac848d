/*-------------------------------------------------------------------------
 *
 * digest.c
 *	  SHA-256 and HMAC-SHA-256 by OpenSSL's EVP interface.
 *
 * This file is the only user of OpenSSL in the tree.  EVP picks the
 * processor's SHA instructions by itself, which makes hashing about 5 % of
 * an export.  OpenSSL's own error texts are not passed on: its queue belongs
 * to the process, and a server process may have entries of other code in it.
 *
 * The digest of an archive proves equality.  It is no signature and says
 * nothing about who made the archive.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "digest.h"

struct EvSha256
{
	EVP_MD_CTX *context;
};

/* The context is on the heap because its size is OpenSSL's secret. */
EvSha256 *
ev_sha256_create(EvError *error)
{
	EvSha256   *hash = malloc(sizeof(EvSha256));

	if (hash == NULL)
	{
		ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		return NULL;
	}

	hash->context = EVP_MD_CTX_new();
	if (hash->context == NULL ||
		EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) != 1)
	{
		ev_error_set(error, EV_ERROR_LIBRARY, "could not start a SHA-256");
		ev_sha256_free(hash);
		return NULL;
	}
	return hash;
}

bool
ev_sha256_update(EvSha256 *hash, const void *data, size_t length,
				 EvError *error)
{
	if (EVP_DigestUpdate(hash->context, data, length) != 1)
		return ev_error_set(error, EV_ERROR_LIBRARY,
							"could not compute a SHA-256");
	return true;
}

bool
ev_sha256_finish(EvSha256 *hash, unsigned char digest[EV_SHA256_BYTES],
				 EvError *error)
{
	if (EVP_DigestFinal_ex(hash->context, digest, NULL) != 1)
		return ev_error_set(error, EV_ERROR_LIBRARY,
							"could not finish a SHA-256");
	return true;
}

void
ev_sha256_free(EvSha256 *hash)
{
	if (hash == NULL)
		return;
	EVP_MD_CTX_free(hash->context);
	free(hash);
}

bool
ev_sha256(const void *data, size_t length,
		  unsigned char digest[EV_SHA256_BYTES], EvError *error)
{
	if (EVP_Digest(data, length, digest, NULL, EVP_sha256(), NULL) != 1)
		return ev_error_set(error, EV_ERROR_LIBRARY,
							"could not compute a SHA-256");
	return true;
}

bool
ev_hmac_sha256(const void *key, size_t key_length, const void *data,
			   size_t length, unsigned char digest[EV_SHA256_BYTES],
			   EvError *error)
{
	/* HMAC() takes the key's length as an int. */
	if (key_length > 1024 * 1024)
		return ev_error_set(error, EV_ERROR_ARGUMENT,
							"key is longer than 1 MB");
	if (HMAC(EVP_sha256(), key, (int) key_length, data, length, digest,
			 NULL) == NULL)
		return ev_error_set(error, EV_ERROR_LIBRARY,
							"could not compute an HMAC-SHA-256");
	return true;
}

void
ev_sha256_hex(const unsigned char digest[EV_SHA256_BYTES],
			  char hex[EV_SHA256_HEX])
{
	static const char digits[] = "0123456789abcdef";
	int			i;

	for (i = 0; i < EV_SHA256_BYTES; i++)
	{
		hex[2 * i] = digits[digest[i] >> 4];
		hex[2 * i + 1] = digits[digest[i] & 15];
	}
	hex[2 * EV_SHA256_BYTES] = '\0';
}

/*
 * Comparing a token byte by byte until the first difference would tell an
 * attacker how far a guess was right.
 */
bool
ev_digest_equal(const void *a, const void *b, size_t length)
{
	return CRYPTO_memcmp(a, b, length) == 0;
}

/*-------------------------------------------------------------------------
 *
 * failing.h
 *	  Library calls that fail when a test wants them to.
 *
 * The linker leads the calls of our own objects here (see the Makefile); the
 * libraries call each other as always.  Each call has a number, and the one
 * that the test picked fails as that function fails when memory is exhausted
 * or the library is broken.  Memory is counted as well, so that a test sees
 * what was not given back.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_TEST_FAILING_H
#define EV_TEST_FAILING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <isa-l/igzip_lib.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <zip.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

static bool failing_armed = false;
static long failing_calls = 0;	/* made since failing_start */
static long failing_at = -1;	/* the one to fail */
static const char *failing_name = "";	/* what has failed */
static long failing_memory = 0; /* pieces that are not freed yet */

static void
failing_start(long at)
{
	failing_calls = 0;
	failing_at = at;
	failing_name = "";
	failing_armed = true;
}

/* Must this call fail? */
static bool
fails(const char *name)
{
	if (!failing_armed || failing_calls++ != failing_at)
		return false;
	failing_name = name;
	return true;
}

/* A function of a library: its type, name, arguments, and how it fails. */
#define FAILING(type, name, parameters, arguments, failure) \
	extern type __real_##name parameters; \
	extern type __wrap_##name parameters; \
	type __wrap_##name parameters \
	{ \
		return fails(#name) ? (failure) : __real_##name arguments; \
	} \
	extern type __real_##name parameters

extern void *__real_malloc(size_t size);
extern void *__wrap_malloc(size_t size);
extern void *__real_calloc(size_t number, size_t size);
extern void *__wrap_calloc(size_t number, size_t size);
extern void *__real_realloc(void *old, size_t size);
extern void *__wrap_realloc(void *old, size_t size);
extern void __real_free(void *memory);
extern void __wrap_free(void *memory);

void *
__wrap_malloc(size_t size)
{
	if (fails("malloc"))
		return NULL;
	failing_memory++;
	return __real_malloc(size);
}

void *
__wrap_calloc(size_t number, size_t size)
{
	if (fails("calloc"))
		return NULL;
	failing_memory++;
	return __real_calloc(number, size);
}

void *
__wrap_realloc(void *old, size_t size)
{
	if (fails("realloc"))
		return NULL;
	if (old == NULL)
		failing_memory++;
	return __real_realloc(old, size);
}

void
__wrap_free(void *memory)
{
	if (memory != NULL)
		failing_memory--;
	__real_free(memory);
}

FAILING(EVP_MD_CTX *, EVP_MD_CTX_new, (void), (), NULL);
FAILING(int, EVP_DigestInit_ex,
		(EVP_MD_CTX *context, const EVP_MD *type, ENGINE *engine),
		(context, type, engine), 0);
FAILING(int, EVP_DigestUpdate,
		(EVP_MD_CTX *context, const void *data, size_t length),
		(context, data, length), 0);
FAILING(int, EVP_DigestFinal_ex,
		(EVP_MD_CTX *context, unsigned char *digest, unsigned int *length),
		(context, digest, length), 0);
FAILING(int, EVP_Digest,
		(const void *data, size_t length, unsigned char *digest,
		 unsigned int *size, const EVP_MD *type, ENGINE *engine),
		(data, length, digest, size, type, engine), 0);
FAILING(unsigned char *, HMAC,
		(const EVP_MD *type, const void *key, int key_length,
		 const unsigned char *data, size_t length, unsigned char *digest,
		 unsigned int *size),
		(type, key, key_length, data, length, digest, size), NULL);
FAILING(int, isal_deflate, (struct isal_zstream *stream), (stream),
		INVALID_FLUSH);
FAILING(pcre2_match_data *, pcre2_match_data_create_8,
		(uint32_t size, pcre2_general_context *context), (size, context),
		NULL);
FAILING(pcre2_match_context *, pcre2_match_context_create_8,
		(pcre2_general_context *context), (context), NULL);
FAILING(int, pcre2_match_8,
		(const pcre2_code *code, PCRE2_SPTR subject, PCRE2_SIZE length,
		 PCRE2_SIZE offset, uint32_t options, pcre2_match_data *data,
		 pcre2_match_context *context),
		(code, subject, length, offset, options, data, context),
		PCRE2_ERROR_NOMEMORY);
FAILING(zip_source_t *, zip_source_function,
		(zip_t *archive, zip_source_callback function, void *state),
		(archive, function, state), NULL);
FAILING(zip_int64_t, zip_file_add,
		(zip_t *archive, const char *name, zip_source_t *source,
		 zip_flags_t flags),
		(archive, name, source, flags), -1);
FAILING(int, zip_file_set_dostime,
		(zip_t *archive, zip_uint64_t index, zip_uint16_t time,
		 zip_uint16_t date, zip_flags_t flags),
		(archive, index, time, date, flags), -1);
FAILING(zip_file_t *, zip_fopen_index,
		(zip_t *archive, zip_uint64_t index, zip_flags_t flags),
		(archive, index, flags), NULL);
FAILING(zip_int64_t, zip_fread,
		(zip_file_t *file, void *data, zip_uint64_t length),
		(file, data, length), -1);

/* These say why, and the reason decides what the caller reports. */
extern zip_source_t *__real_zip_source_function_create(zip_source_callback,
													   void *,
													   zip_error_t *);
extern zip_source_t *__wrap_zip_source_function_create(zip_source_callback,
													   void *,
													   zip_error_t *);
extern zip_t *__real_zip_open_from_source(zip_source_t *source, int flags,
										  zip_error_t *error);
extern zip_t *__wrap_zip_open_from_source(zip_source_t *source, int flags,
										  zip_error_t *error);

zip_source_t *
__wrap_zip_source_function_create(zip_source_callback function, void *state,
								  zip_error_t *error)
{
	if (!fails("zip_source_function_create"))
		return __real_zip_source_function_create(function, state, error);
	zip_error_set(error, ZIP_ER_MEMORY, 0);
	return NULL;
}

zip_t *
__wrap_zip_open_from_source(zip_source_t *source, int flags,
							zip_error_t *error)
{
	if (!fails("zip_open_from_source"))
		return __real_zip_open_from_source(source, flags, error);
	zip_error_set(error, ZIP_ER_MEMORY, 0);
	return NULL;
}

#endif							/* EV_TEST_FAILING_H */

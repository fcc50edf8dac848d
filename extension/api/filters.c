/*-------------------------------------------------------------------------
 *
 * filters.c
 *	  Check the filters of a request and bring them into canonical form.
 *
 * Two requests that mean the same must have the same digest, so the order of
 * values and doubles are taken out here (requirement S3.7).  A key that is not
 * known is refused: ignoring it would export more than was asked for.
 *
 * Error messages name keys, never values, which may be confidential.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "api/filters.h"

#define MAX_FILTER_VALUES 1000

static const char *const known_keys[] = {
	"tenant_id", "actor_id", "action", "target_type", "target_id", "outcome",
	"error_code"
};

static void check_key(const char *key);
static void push_values(JsonbParseState **state, const char *key,
						JsonbValue *value);
static JsonbValue *list_values(const char *key, JsonbValue *value,
							   int *nvalues);
static int	compare_strings(const void *a, const void *b);
static void refuse_value(const char *key);

Jsonb *
ev_filters_canonical(Jsonb *filters)
{
	JsonbParseState *state = NULL;
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	value;
	char	   *key = NULL;

	(void) pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	if (filters != NULL && !JB_ROOT_IS_OBJECT(filters))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("filters must be a JSON object"),
				 errhint("For instance: {\"outcome\": [\"failure\", \"denied\"]}.")));

	iterator = filters ? JsonbIteratorInit(&filters->root) : NULL;
	while (iterator != NULL &&
		   (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
		{
			key = pnstrdup(value.val.string.val, value.val.string.len);
			check_key(key);
		}
		else if (token == WJB_VALUE)
			push_values(&state, key, &value);
	}
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

static void
check_key(const char *key)
{
	int			i;

	for (i = 0; i < lengthof(known_keys); i++)
	{
		if (strcmp(known_keys[i], key) == 0)
			return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown filter \"%s\"", key),
			 errhint("Filters are tenant_id, actor_id, action, target_type, target_id, outcome and error_code.")));
}

static void
push_values(JsonbParseState **state, const char *key, JsonbValue *value)
{
	JsonbValue	name;
	JsonbValue *values;
	int			nvalues;
	int			i;

	values = list_values(key, value, &nvalues);
	qsort(values, nvalues, sizeof(JsonbValue), compare_strings);

	name.type = jbvString;
	name.val.string.val = pstrdup(key);
	name.val.string.len = strlen(key);
	(void) pushJsonbValue(state, WJB_KEY, &name);
	(void) pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	for (i = 0; i < nvalues; i++)
	{
		if (i == 0 || compare_strings(&values[i - 1], &values[i]) != 0)
			(void) pushJsonbValue(state, WJB_ELEM, &values[i]);
	}
	(void) pushJsonbValue(state, WJB_END_ARRAY, NULL);
}

/*
 * A single string stands for a list of one.
 */
static JsonbValue *
list_values(const char *key, JsonbValue *value, int *nvalues)
{
	JsonbValue *values;
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	element;

	*nvalues = 0;
	if (value->type == jbvString)
	{
		values = palloc(sizeof(JsonbValue));
		values[(*nvalues)++] = *value;
		return values;
	}
	if (value->type != jbvBinary ||
		!JsonContainerIsArray(value->val.binary.data) ||
		JsonContainerIsScalar(value->val.binary.data) ||
		JsonContainerSize(value->val.binary.data) == 0)
		refuse_value(key);
	if (JsonContainerSize(value->val.binary.data) > MAX_FILTER_VALUES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("filter \"%s\" has more than %d values", key,
						MAX_FILTER_VALUES),
				 errhint("Split the request.")));

	values = palloc(sizeof(JsonbValue) *
					JsonContainerSize(value->val.binary.data));
	iterator = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&iterator, &element, true)) != WJB_DONE)
	{
		if (token != WJB_ELEM)
			continue;
		if (element.type != jbvString)
			refuse_value(key);
		values[(*nvalues)++] = element;
	}
	return values;
}

static int
compare_strings(const void *a, const void *b)
{
	const JsonbValue *left = a;
	const JsonbValue *right = b;
	int			shorter = Min(left->val.string.len, right->val.string.len);
	int			order;

	order = memcmp(left->val.string.val, right->val.string.val, shorter);
	if (order == 0)
		order = left->val.string.len - right->val.string.len;
	return order;
}

static void
refuse_value(const char *key)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("filter \"%s\" must be a string or a list of strings", key),
			 errhint("A list must not be empty; leave the filter out to select all.")));
}

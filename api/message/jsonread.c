#include "jsonread.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "jsonload.h"

/* ---- values ------------------------------------------------------------- */

const char *jsonread_type(const json_t *value)
{
    static const char *const types[] = {
        [JSON_OBJECT] = "an object",
        [JSON_ARRAY] = "an array",
        [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer",
        [JSON_REAL] = "a number with a fraction or an exponent",
        [JSON_TRUE] = "a boolean",
        [JSON_FALSE] = "a boolean",
        [JSON_NULL] = "without a value",
    };
    return types[json_typeof(value)];
}

bool jsonread_text(const json_t *value, const char *pointer, struct span *text,
                   struct faults *errors)
{
    if (!json_is_string(value)) {
        faults_add(errors, pointer, "%s is %s; it must be a string",
                   pointer + 1, jsonread_type(value));
        return false;
    }
    *text = (struct span){json_string_value(value), json_string_length(value)};
    return true;
}

bool jsonread_integer(const json_t *value, const char *pointer,
                      struct jsonread_range range, int64_t *number,
                      struct faults *errors)
{
    const char *name = pointer + 1;
    if (!json_is_integer(value)) {
        faults_add(
            errors, pointer,
            "%s is %s; it must be an integer from %" PRId64 " to %" PRId64 "%s",
            name, jsonread_type(value), range.least, range.most, range.unit);
        return false;
    }
    *number = json_integer_value(value);
    if (*number >= range.least && *number <= range.most)
        return true;
    faults_add(errors, pointer,
               "%s is %" PRId64 "; it must be an integer from %" PRId64
               " to %" PRId64 "%s",
               name, *number, range.least, range.most, range.unit);
    return false;
}

/* ---- objects ------------------------------------------------------------ */

/*
 * Adds the JSON pointer of a member: '~' and '/' are escaped (RFC 6901 §3).
 * What does not fit is cut off.
 */
static void point_to(const char *within, const char *name,
                     char pointer[FAULT_POINTER_MAX + 1])
{
    size_t len = (size_t)snprintf(pointer, FAULT_POINTER_MAX, "%s/", within);
    for (; *name != '\0' && len + 2 <= FAULT_POINTER_MAX; name++) {
        if (*name == '~' || *name == '/') {
            pointer[len++] = '~';
            pointer[len++] = *name == '~' ? '0' : '1';
        } else {
            pointer[len++] = *name;
        }
    }
    pointer[len] = '\0';
}

void jsonread_refuse_member(const char *within, const char *name,
                            const char *const known[], int count,
                            struct faults *errors)
{
    char pointer[FAULT_POINTER_MAX + 1];
    char list[FAULT_DETAIL_MAX]; /* for people: "token and ttl_ms" */
    size_t len = 0;
    for (int i = 0; i < count; i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s",
                                i == 0           ? ""
                                : i == count - 1 ? " and "
                                                 : ", ",
                                known[i]);
    point_to(within, name, pointer);
    faults_add(errors, pointer,
               "the field %s is unknown here; the fields are %s",
               pointer + strlen(within) + 1, list);
}

/* What jansson's own text says too, but without a piece of the body. */
static const char *const reasons[] = {
    [json_error_duplicate_key] = "a field occurs twice",
    [json_error_invalid_utf8] = "the text is not valid UTF-8",
    [json_error_null_character] = "a string contains U+0000",
    [json_error_premature_end_of_input] = "the text ends too early",
    [json_error_end_of_input_expected] = "text follows the object",
    [json_error_stack_overflow] = "the nesting is too deep",
    [json_error_numeric_overflow] = "a number is too large",
};

json_t *jsonread_load(struct span text, struct faults *errors)
{
    json_error_t error;
    if (text.len == 0) {
        faults_add(errors, "", "the body is empty; send a JSON object");
        return NULL;
    }
    json_t *root = jsonload(text.ptr, text.len,
                            JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (jsonload_has_failed())
        return NULL;
    if (root == NULL) {
        size_t code = (size_t)json_error_code(&error);
        const char *reason =
            code < sizeof reasons / sizeof *reasons ? reasons[code] : NULL;
        faults_add(errors, "",
                   "the body is not valid JSON: %s, at line "
                   "%d, column %d",
                   reason != NULL ? reason : "the syntax is invalid",
                   error.line, error.column);
        return NULL;
    }
    if (!json_is_object(root)) {
        faults_add(errors, "", "the body is %s; it must be an object",
                   jsonread_type(root));
        json_decref(root);
        return NULL;
    }
    return root;
}

/* PushRequest as JSON, by tokens: names in camelCase or snake_case, unknown ones skipped, rawProfile decoded while it
 * arrives. */
#include "codecs/base64.h"
#include "codecs/json.h"
#include "codecs/push.h"

enum { SLICE = 4096, TEXT_MAX = 64 * 1024 };

/* What the value at hand is. */
enum place {
    AT_TOP,
    AT_REQUEST,
    AT_SERIES_LIST,
    AT_SERIES,
    AT_LABEL_LIST,
    AT_LABEL,
    AT_LABEL_NAME,
    AT_LABEL_VALUE,
    AT_SAMPLE_LIST,
    AT_SAMPLE,
    AT_RAW,
    AT_ID,
    AT_OTHER
};

struct push_json {
    struct push *push;
    struct json json;
    enum place next;                     /* of the value that a key announced */
    enum place path[JSON_DEPTH_MAX + 1]; /* of the open containers */
    enum place string;                   /* of the open string */
    struct base64 base64;
    struct payload *payload;
    bool ending; /* the payload */
    char block[SLICE];
    struct str pending; /* of block, on its way to the payload */
    char *text[3];      /* label name, label value, ID */
    size_t n_text[3], cap_text[3];
};

static enum step bad(struct push_json *d, const char *what)
{
    (void)fault_set(&d->push->in->fault, E_BAD_INPUT, "malformed PushRequest (JSON): %s", what);
    return STEP_FAIL;
}

struct push_json *push_json_new(struct push *p)
{
    struct push_json *d = NEW(p->in->arena, struct push_json, 1);

    if (!d) {
        (void)intake_no_room(p->in);
        return NULL;
    }
    d->push = p;
    return d;
}

static enum place key_place(enum place in, struct str key)
{
    static const struct {
        enum place in;
        struct str key;
        enum place is;
    } keys[] = {
        {AT_REQUEST, {"series", 6}, AT_SERIES_LIST}, {AT_SERIES, {"labels", 6}, AT_LABEL_LIST},
        {AT_SERIES, {"samples", 7}, AT_SAMPLE_LIST}, {AT_LABEL, {"name", 4}, AT_LABEL_NAME},
        {AT_LABEL, {"value", 5}, AT_LABEL_VALUE},    {AT_SAMPLE, {"rawProfile", 10}, AT_RAW},
        {AT_SAMPLE, {"raw_profile", 11}, AT_RAW},    {AT_SAMPLE, {"ID", 2}, AT_ID},
    };

    for (size_t i = 0; i < COUNTOF(keys); i++)
        if (keys[i].in == in && str_eq(keys[i].key, key))
            return keys[i].is;
    return AT_OTHER;
}

static enum place here(const struct push_json *d)
{
    return d->json.depth ? d->path[d->json.depth] : AT_TOP;
}

/* The place of a value that begins inside of container `in`. */
static enum place value_place(const struct push_json *d, enum place in)
{
    switch (in) {
    case AT_TOP:
        return AT_REQUEST;
    case AT_SERIES_LIST:
        return AT_SERIES;
    case AT_LABEL_LIST:
        return AT_LABEL;
    case AT_SAMPLE_LIST:
        return AT_SAMPLE;
    case AT_OTHER:
        return AT_OTHER;
    default:
        return d->next;
    }
}

static bool is_list(enum place p)
{
    return p == AT_SERIES_LIST || p == AT_LABEL_LIST || p == AT_SAMPLE_LIST;
}

static bool is_object(enum place p)
{
    return p == AT_REQUEST || p == AT_SERIES || p == AT_LABEL || p == AT_SAMPLE;
}

static enum step open(struct push_json *d, bool array)
{
    enum place outer = d->json.depth > 1 ? d->path[d->json.depth - 1] : AT_TOP;
    enum place p = value_place(d, outer);

    if (p != AT_OTHER && !(array ? is_list(p) : is_object(p)))
        return bad(d, array ? "a list where none should be" : "an object where none should be");
    d->path[d->json.depth] = p;
    if (p == AT_LABEL)
        d->n_text[0] = d->n_text[1] = 0;
    if (p == AT_SERIES)
        return push_series_begin(d->push);
    return p == AT_SAMPLE ? push_sample_begin(d->push) : STEP_MORE;
}

static enum step close(struct push_json *d)
{
    enum place p = d->path[d->json.depth + 1];

    if (p == AT_LABEL)
        return push_label(d->push, (struct str){d->text[0], d->n_text[0]}, (struct str){d->text[1], d->n_text[1]});
    if (p == AT_SERIES)
        push_series_end(d->push);
    return STEP_MORE;
}

static enum step begin_string(struct push_json *d)
{
    d->string = value_place(d, here(d));
    if (is_list(d->string) || is_object(d->string))
        return bad(d, "a string where none should be");
    if (d->string == AT_LABEL_NAME || d->string == AT_LABEL_VALUE)
        d->n_text[d->string - AT_LABEL_NAME] = 0;
    if (d->string == AT_ID)
        d->n_text[2] = 0;
    if (d->string != AT_RAW)
        return STEP_MORE;
    d->base64 = (struct base64){0};
    d->payload = push_payload(d->push);
    return d->payload ? STEP_MORE : STEP_FAIL;
}

static enum step add_text(struct push_json *d, size_t which, struct str piece)
{
    size_t need = d->n_text[which] + piece.len;

    if (need > TEXT_MAX)
        return bad(d, "a label or ID longer than 65536 bytes");
    if (need > d->cap_text[which]) {
        char *p = GROW(d->push->in->arena, d->text[which], char, d->cap_text[which], need * 2 + 32);
        if (!p)
            return intake_no_room(d->push->in);
        d->text[which] = p;
        d->cap_text[which] = need * 2 + 32;
    }
    memcpy(d->text[which] + d->n_text[which], piece.p, piece.len);
    d->n_text[which] = need;
    return STEP_MORE;
}

static enum step piece(struct push_json *d, struct str text)
{
    size_t n;

    if (d->string == AT_LABEL_NAME || d->string == AT_LABEL_VALUE)
        return add_text(d, d->string - AT_LABEL_NAME, text);
    if (d->string == AT_ID)
        return add_text(d, 2, text);
    if (d->string != AT_RAW)
        return STEP_MORE;
    if (!base64_feed(&d->base64, text, d->block, &n))
        return bad(d, "rawProfile is not base64");
    d->pending = (struct str){d->block, n};
    return STEP_MORE;
}

static enum step end_string(struct push_json *d)
{
    if (d->string == AT_ID)
        return push_sample_id(d->push, (struct str){d->text[2], d->n_text[2]});
    if (d->string != AT_RAW)
        return STEP_MORE;
    d->ending = true;
    return base64_end(&d->base64) ? STEP_MORE : bad(d, "rawProfile is not whole base64");
}

/* null stands for "absent" anywhere; other scalars only where nothing is known of them. */
static enum step scalar(struct push_json *d, struct str text)
{
    enum place p = value_place(d, here(d));

    return p == AT_OTHER || str_eq(text, STR("null")) ? STEP_MORE : bad(d, "a number or literal where none should be");
}

static enum step take_event(struct push_json *d, enum json_event e, struct str text)
{
    switch (e) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return open(d, e == JSON_ARRAY);
    case JSON_OBJECT_END:
    case JSON_ARRAY_END:
        return close(d);
    case JSON_KEY:
        d->next = key_place(here(d), text);
        return STEP_MORE;
    case JSON_STRING:
        return begin_string(d);
    case JSON_PIECE:
        return piece(d, text);
    case JSON_STRING_END:
        return end_string(d);
    case JSON_SCALAR:
        return scalar(d, text);
    case JSON_BAD:
        return bad(d, d->json.reason);
    default:
        return STEP_MORE;
    }
}

static enum step flush(struct push_json *d, uint32_t *budget)
{
    enum step s = STEP_MORE;

    if (d->pending.len)
        s = payload_feed(d->payload, &d->pending, budget);
    if (s == STEP_MORE && d->ending) {
        s = payload_end(d->payload, budget);
        d->ending = s != STEP_MORE;
    }
    return s;
}

enum step push_json_feed(struct push_json *d, struct str *in, uint32_t *budget)
{
    while (in->len || d->pending.len || d->ending) {
        struct str text;
        if (*budget == 0)
            return STEP_AGAIN;
        enum step s = flush(d, budget);
        if (s != STEP_MORE)
            return s;
        struct str slice = budget_slice((struct str){in->p, in->len < SLICE ? in->len : SLICE}, *budget);
        size_t given = slice.len;
        s = take_event(d, json_next(&d->json, &slice, &text), text);
        in->p += given - slice.len;
        in->len -= given - slice.len;
        budget_take(budget, given - slice.len);
        if (s != STEP_MORE)
            return s;
    }
    return STEP_MORE;
}

enum step push_json_end(struct push_json *d, uint32_t *budget)
{
    struct str nothing = {"", 0};
    enum step s = push_json_feed(d, &nothing, budget);

    if (s != STEP_MORE)
        return s;
    if (!json_done(&d->json))
        return bad(d, d->json.reason ? d->json.reason : "it ends too early");
    return STEP_MORE;
}

#include "texts.h"

bool texts_keep(struct texts *texts, struct span first, struct span second)
{
    size_t len = first.len + second.len;
    texts->bytes = len <= sizeof texts->small ? texts->small : malloc(len);
    if (texts->bytes == NULL)
        return false;
    texts->first_len = span_copy(texts->bytes, first);
    texts->second_len = span_copy(texts->bytes + first.len, second);
    return true;
}

void texts_drop(struct texts *texts)
{
    if (texts->bytes != texts->small)
        free(texts->bytes);
    texts->bytes = NULL;
}

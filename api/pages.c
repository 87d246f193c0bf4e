#include "pages.h"

#include <assert.h>

/* The files, made strings by the Makefile. */
static const char index_html[] =
#include "index.html.h"
    ;
static const char page_css[] =
#include "page.css.h"
    ;
static const char page_js[] =
#include "page.js.h"
    ;
static const char page_svg[] =
#include "page.svg.h"
    ;
static const char docs_html[] =
#include "docs.html.h"
    ;
static const char openapi[] =
#include "openapi.yaml.h"
    ;

struct page {
    enum route route;
    const char *content_type;
    const char *text;
    size_t len;
};

#define TEXT(name) (name), sizeof(name) - 1

static const struct page pages[] = {
    {ROUTE_PAGE, "text/html; charset=utf-8", TEXT(index_html)},
    {ROUTE_PAGE_CSS, "text/css; charset=utf-8", TEXT(page_css)},
    {ROUTE_PAGE_JS, "text/javascript; charset=utf-8", TEXT(page_js)},
    {ROUTE_PAGE_ICON, "image/svg+xml", TEXT(page_svg)},
    {ROUTE_DOCS, "text/html; charset=utf-8", TEXT(docs_html)},
    {ROUTE_OPENAPI, "application/yaml", TEXT(openapi)},
};

void pages_respond(enum route route, struct http_response *response)
{
    const struct page *page = pages;
    while (page->route != route) {
        page++;
        assert(page < pages + sizeof pages / sizeof *pages);
    }
    response->status = 200;
    response->content_type = page->content_type;
    response->body = (char *)page->text;
    response->body_len = page->len;
    response->is_static = true;
    response->is_page = true;
}

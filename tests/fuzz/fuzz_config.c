/* SPDX-License-Identifier: MIT */
/*
 * Each line is an argument. What is accepted is within the limits, and is read
 * again as it was printed; what is refused is told in one line without the
 * secret of an address.
 */
#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../server/base/address.h"
#include "../../server/config/config.h"
#include "input.h"

enum { ARGS_MAX = 40 };

static const char secret[] = "s3cret";

static char *no_environment[] = {NULL};

/* ---- accepted ----------------------------------------------------------- */

/* As a name in JSON and in the log. */
static bool is_showable(const char *text)
{
    json_t *string = json_string(text);
    json_decref(string);
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return string != NULL;
}

static void check_node(const struct address_node *node)
{
    struct address_node again;
    assert(node->host[0] != '\0' && node->db >= 0 && node->db <= 65535);
    assert(node->is_unix ? node->port == 0 && node->host[0] == '/'
                         : node->port >= 1 && node->port <= 65535);
    assert(is_showable(node->name) && node->name[0] != '\0');
    assert(is_showable(node->address));
    assert(node->password[0] != '\0' || node->user[0] == '\0');
    const char *reason = address_parse_node(node->address, &again);
    assert(reason == NULL && address_is_same(node, &again));
    assert(strcmp(again.address, node->address) == 0);
    assert(strcmp(again.name, node->address) == 0);
}

static void check_limits(const struct config *config)
{
    assert(config->listen_host[0] != '\0' && is_showable(config->listen_host));
    assert(config->listen_port >= 1 && config->listen_port <= 65535);
    assert(config->nodes_count <= NODES_MAX);
    assert(config->default_ttl_ms >= TTL_MIN_MS &&
           config->default_ttl_ms <= config->max_ttl_ms &&
           (config->max_hold_ms == 0 ||
            config->max_ttl_ms <= config->max_hold_ms));
    assert(config->drift_factor >= 0 && config->drift_factor <= 0.5);
    assert(strstr(config->key_prefix, RESERVED_NAME) == NULL);
    for (int i = 0; i < config->nodes_count; i++)
        check_node(&config->nodes[i]);
}

static char *print(const struct config *config)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert(out != NULL);
    config_print(config, out);
    int rc = fclose(out);
    assert(rc == 0 && text != NULL);
    return text;
}

static void read_again(const struct config *config)
{
    struct config again;
    char error[CONFIG_ERROR_MAX];
    char *argv[ARGS_MAX + 2] = {"redlockd", "--check-config"};
    int argc = 2;
    char *text = print(config), *before = print(config);
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        assert(argc < ARGS_MAX);
        argv[argc++] = line;
    }
    bool is_read = config_load(&again, argc, argv, no_environment, error);
    assert(is_read);
    free(text);
    text = print(&again);
    assert(strcmp(text, before) == 0);
    free(text);
    free(before);
}

/* ---- refused ------------------------------------------------------------ */

/* A password of ours, where it is one: in front of an @. */
static bool has_secret(const char *argument)
{
    const char *at = strstr(argument, secret);
    return at != NULL && at[strlen(secret)] == '@' &&
           strstr(at + strlen(secret), secret) == NULL;
}

static void check_error(const char *error, char *const argv[], int argc)
{
    size_t len = strnlen(error, CONFIG_ERROR_MAX);
    assert(len > 0 && len < CONFIG_ERROR_MAX);
    for (size_t i = 0; i < len; i++)
        assert((unsigned char)error[i] >= ' ' && error[i] != 0x7f);
    for (int i = 1; i < argc; i++)
        if (strstr(argv[i], secret) != NULL && !has_secret(argv[i]))
            return;
    assert(strstr(error, secret) == NULL);
}

void fuzz(struct input *input)
{
    struct config config;
    char error[CONFIG_ERROR_MAX];
    char *argv[ARGS_MAX + 1] = {"redlockd"};
    int argc = 1;
    while (input_has_more(input) && argc < ARGS_MAX)
        argv[argc++] = input_text(input);
    if (!config_load(&config, argc, argv, no_environment, error)) {
        check_error(error, argv, argc);
    } else if (config.action != CONFIG_HELP &&
               config.action != CONFIG_VERSION) {
        check_limits(&config);
        if (config.nodes_count > 0)
            read_again(&config);
    }
}

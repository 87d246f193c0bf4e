#include "config.h"

bool config_has_tls_nodes(const struct config *config)
{
    for (int i = 0; i < config->nodes_count; i++)
        if (config->nodes[i].is_tls)
            return true;
    return false;
}

int config_quorum(const struct config *config)
{
    return quorum_of(config->nodes_count);
}

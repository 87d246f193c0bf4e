<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Exception;

/** 403: the servers know this client, but it may not do this. */
final class Forbidden extends RequestRefused
{
}

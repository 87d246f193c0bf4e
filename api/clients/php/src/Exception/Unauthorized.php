<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Exception;

/** 401: the servers do not know the access token, or there is none. */
final class Unauthorized extends RequestRefused
{
}

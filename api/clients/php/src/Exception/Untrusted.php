<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Exception;

/**
 * No server has a certificate that this client trusts: signed by a known CA, for
 * its name, and not expired.
 */
final class Untrusted extends RedlockdException
{
}

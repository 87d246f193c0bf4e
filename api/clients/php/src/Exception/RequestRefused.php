<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Exception;

/** The request is wrong, and would be wrong again. */
class RequestRefused extends RedlockdException
{
    /** @param string $errorCode the `code` of the problem; '': it is not from redlockd */
    public function __construct(
        string $message,
        public readonly int $status,
        public readonly string $errorCode,
    ) {
        parent::__construct($message);
    }
}

# frozen_string_literal: true
# SPDX-License-Identifier: MIT

module Redlockd
  # Every error of this package.
  class Error < StandardError; end

  # Somebody else held the lock until the wait had passed.
  class LockHeld < Error
    # The holder's label, fencing token, number of readers, and the seconds until
    # it expires unless it is extended; nil: not known, or there is none.
    attr_reader :owner, :fencing_token, :readers, :remaining

    def initialize(message, held_by = {})
      super(message)
      @owner = held_by["owner"]
      @fencing_token = held_by["fencing_token"]
      @readers = held_by["readers"]
      @remaining = held_by["remaining_ms"]&.fdiv(1000)
    end
  end

  # The lock expired, or was released by force, before its holder released it. What
  # the holder did since then may have overlapped with the work of the next holder.
  class LockLost < Error; end

  # No server granted or refused the lock until the wait had passed. If a response
  # was lost, the lock may be held until its TTL ends.
  class Unavailable < Error; end

  # No server granted it: this client asks too often, or holds too many locks.
  class RateLimited < Unavailable
    attr_reader :retry_after # seconds

    def initialize(message, retry_after)
      super(message)
      @retry_after = retry_after
    end
  end

  # No server has a certificate that this client trusts: signed by a known CA, for
  # its name, and not expired.
  class Untrusted < Error; end

  # The request is wrong, and would be wrong again.
  class RequestRefused < Error
    # code: of the problem; "": it is not from redlockd
    attr_reader :status, :code

    def initialize(message, status, code)
      super(message)
      @status = status
      @code = code
    end
  end

  # 401: the servers do not know the access token, or there is none.
  class Unauthorized < RequestRefused; end

  # 403: the servers know this client, but it may not do this.
  class Forbidden < RequestRefused; end
end

# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "json"

module Redlockd
  # What an operation is about: two with a resource in common may be in one batch only
  # if they have the same group. nil: they exclude each other.
  Scope = Struct.new(:names, :group)

  # A request that a talk wants to be sent.
  #
  # timeout_ms: for the connection, and for the response. wait_ms: how much later
  # the response may come, as the server waits. url: of the replica; nil: of the
  # first that is not avoided. scope: of an acquire, an extend or a release, which may go
  # in a batch; nil: of other requests. is_urgent: there is no time to wait for other
  # requests. must_wait: others hold the lock. is_try: it may wait, and was sent without
  # that. operation: as which it was sent. is_direct: it was sent as none.
  Send = Struct.new(:http_method, :path, :headers, :body, :timeout_ms, :wait_ms, :url, :scope,
                    :is_urgent, :must_wait, :is_try, :operation, :is_direct, keyword_init: true) do
    def initialize(wait_ms: 0, headers: {}, **rest)
      super
    end

    def token
      headers["X-Lock-Token"]
    end

    # The same as an item of a batch, in JSON.
    def item
      @item ||= JSON.generate(
        case http_method
        when "POST"
          { "operation" => "acquire", **body.except("wait_ms"),
            "idempotency_key" => headers["Idempotency-Key"] }
        when "PUT" then { "operation" => "extend", **of_lock, **body }
        else { "operation" => "release", **of_lock }
        end
      )
    end

    # Beside other requests.
    def try_once
      return unless wait_ms.positive?

      self.wait_ms = 0
      body.delete("wait_ms")
      self.is_try = true
    end

    private

    def of_lock
      { "id" => path.split("/")[2], "token" => token }
    end
  end

  # What a talk wants instead of a request: nothing, for so long.
  Pause = Struct.new(:ms)

  # What a request came to: a response, or that there is none.
  class Answer
    ENDED = %w[lock_not_found not_owner].freeze
    HELD = %w[lock_held too_many_readers].freeze
    MAX_HOLD = "max_hold_reached"
    # codes of this package, where there is no response
    LOST, UNSENT, UNTRUSTED = "no_response", "unsent", "untrusted"

    attr_reader :status, :body, :url, :sent_ms

    # status: 0: there is no response. sent_ms: the moment before the request was
    # sent. is_repeated: the request may have arrived twice, as a kept connection
    # had ended before the response.
    def initialize(status, body, url: "", sent_ms: 0.0, content_type: "", is_repeated: false)
      @status = status
      @body = body
      @url = url
      @sent_ms = sent_ms
      @content_type = content_type
      @is_repeated = is_repeated
    end

    def self.failure(code, detail, url, sent_ms, is_repeated: false)
      new(0, { "code" => code, "detail" => detail }, url: url, sent_ms: sent_ms,
                                                     is_repeated: is_repeated)
    end

    # The content may be no JSON: a proxy may have answered.
    def self.read(status, content, retry_after: nil, **rest)
      body = begin
        text = content.to_s.dup.force_encoding(Encoding::UTF_8)
        JSON.parse(text) if text.valid_encoding?
      rescue JSON::ParserError, EncodingError
        nil
      end
      body = {} unless body.is_a?(Hash)
      body["retry_after_ms"] ||= 1000 * retry_after.to_i if retry_after.to_s.match?(/\A\d{1,9}\z/)
      new(status, body, **rest)
    end

    def code
      @body["code"].is_a?(String) ? @body["code"] : ""
    end

    def repeated?
      @is_repeated
    end

    # The same, after another one: to a request that may have been carried out before.
    def after(other)
      @is_repeated ||= other.repeated?
      self
    end

    # Whether the request is wrong, here and at every other replica.
    def final?
      @status.between?(300, 499) && ![408, 429].include?(@status)
    end

    # By redlockd or by a gateway in front. Another replica may know other identities.
    def denial?
      [401, 403].include?(@status) || code == UNTRUSTED
    end

    def limit?
      @status == 429
    end

    # Whether the server that gave it works.
    def good?
      return results.any?(&:good?) if results

      @status.between?(200, 499) && @status != 408 && !limit? && !denial?
    end

    # Whether others hold the lock, and it can be waited for.
    def held?
      HELD.include?(code)
    end

    def ended?
      ENDED.include?(code)
    end

    # Whether an acquire with this response certainly was not granted.
    def grants_nothing?
      !repeated? && (final? || denial? || limit? || code == UNSENT)
    end

    # Whether it is what was asked for, and no page of a proxy.
    def has?(member)
      @status == 200 && @body.key?(member)
    end

    def retry_after_ms
      after_ms = @body["retry_after_ms"]
      after_ms.is_a?(Numeric) ? [after_ms, 0].max : 0
    end

    # Of a batch: what came of each operation; nil: it is no response to a batch.
    def results
      of = @body["results"]
      @results ||= of.map { |one| result(one) } if @status == 200 && of.is_a?(Array)
    end

    # Of an operation of a batch whose response does not have it.
    def without_result
      Answer.failure(LOST, "no response to a batch", @url, @sent_ms)
    end

    # Whether something else than redlockd has refused it, whose problems have a code.
    def from_elsewhere?
      @status >= 300 && code.empty?
    end

    def to_s
      detail = @body["detail"].to_s
      if from_elsewhere?
        kind = @content_type.to_s[0, 80].gsub(/[^ -~]/, "?")
        detail = "not from redlockd (#{kind.empty? ? 'no Content-Type' : kind})"
      end
      "#{"#{@status} " if @status.positive?}#{detail}".rstrip
    end

    private

    def result(one)
      return without_result unless one.is_a?(Hash)

      body = one.values_at("grant", "release", "problem").compact.first
      return without_result unless one["status"].is_a?(Integer) && body.is_a?(Hash)

      Answer.new(one["status"], body, url: @url, sent_ms: @sent_ms, is_repeated: @is_repeated)
    end
  end
end

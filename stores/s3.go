package stores

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/logging"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

// logged sends what a client of S3 has to say to the program's log: of itself it writes
// lines to standard error. They are about requests that are tried again, so nobody needs
// them who does not look for them.
var logged = logging.LoggerFunc(func(_ logging.Classification, format string, v ...any) {
	slog.Debug("object store: " + fmt.Sprintf(format, v...))
})

// withLog is the bucket with a client that writes to the log. Buckets that are not in S3
// stay as they are.
func withLog(ctx context.Context, b *blob.Bucket, u *url.URL) (*blob.Bucket, error) {
	var client *s3.Client
	if !b.As(&client) {
		return b, nil
	}
	options := client.Options()
	options.Logger = logged
	q := u.Query()
	again, err := s3blob.OpenBucket(ctx, s3.New(options), u.Host, &s3blob.Options{
		EncryptionType: types.ServerSideEncryption(q.Get("ssetype")), KMSEncryptionID: q.Get("kmskeyid"),
		RequestChecksumCalculation: options.RequestChecksumCalculation})
	if err != nil {
		return nil, err
	}
	return again, b.Close()
}
